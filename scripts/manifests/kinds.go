package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"knative.dev/pkg/apis"
	serving "knative.dev/serving/pkg/apis/serving/v1"
	"sigs.k8s.io/yaml"
)

// checkKind checks an object as its API server would: strictly by the types of
// Kubernetes and of Knative Serving, else by the schema of its CRD.
func (c *check) checkKind(o Object) {
	gvk := o.GroupVersionKind()
	switch {
	case o.isKnative():
		c.checkServing(o)
	case scheme.Scheme.Recognizes(gvk):
		decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
		if _, _, err := decoder.Decode(o.text, nil, nil); err != nil {
			c.found(o, "%v", err)
		}
	default:
		c.checkCRD(o)
	}
	if o.GetNamespace() == "" && gvk.Kind != "Namespace" {
		c.found(o, "has no namespace")
	}
}

// checkServing runs what the webhook of Knative Serving runs.
func (c *check) checkServing(o Object) {
	var service serving.Service
	if err := yaml.UnmarshalStrict(o.text, &service); err != nil {
		c.found(o, "%v", err)
		return
	}
	ctx := apis.WithinCreate(context.Background())
	service.SetDefaults(ctx)
	if err := service.Validate(ctx); err != nil {
		c.found(o, "%v", error(err))
	}
}

// A Finding is one thing that is wrong.
type Finding struct{ Where, What string }

// String is the finding in one line.
func (f Finding) String() string { return f.Where + ": " + f.What }

// found notes that an object is wrong.
func (c *check) found(o Object, format string, args ...any) {
	c.report(c.build+": "+o.String(), format, args...)
}

// report notes that something is wrong at a place, once.
func (c *check) report(where, format string, args ...any) {
	f := Finding{Where: where, What: fmt.Sprintf(format, args...)}
	if !c.seen[f] {
		c.seen[f] = true
		c.findings = append(c.findings, f)
	}
}
