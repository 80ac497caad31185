package main

import (
	"strings"

	"github.com/robfig/cron/v3"
)

// Each platform reads schedules with the same library, but not alike.
var (
	// pingSource reads five fields or six, seconds first; no @every.
	pingSource = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	// cronConnector, of OpenFaaS, reads five fields or a descriptor like @every 10s.
	cronConnector = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
)

// checkCron checks the schedule of a PingSource or a CronJob.
func (c *check) checkCron(o Object) {
	schedule := o.textAt("spec", "schedule")
	switch o.GetKind() {
	case "PingSource":
		if strings.HasPrefix(schedule, "@every") {
			c.found(o, "schedule %q: a PingSource has no @every", schedule)
		} else if _, err := pingSource.Parse(schedule); err != nil {
			c.found(o, "schedule %q: %v", schedule, err)
		}
	case "CronJob":
		if strings.Contains(schedule, "TZ=") {
			c.found(o, "schedule %q: the time zone has a field of its own", schedule)
		} else if _, err := cron.ParseStandard(schedule); err != nil {
			c.found(o, "schedule %q: %v", schedule, err)
		}
	}
}
