package main

import "testing"

func TestMistakesInStack(t *testing.T) {
	t.Parallel()
	const file = "stack.yml"
	notice(t, []mistake{
		{"zero on the Community Edition", file, "${SCALE_TO_ZERO:-false}", "${SCALE_TO_ZERO:-true}", "refused by the Community Edition", ""},
		{"zero that no value changes", file, `"${SCALE_TO_ZERO:-false}"`, `"false"`, `com.openfaas.scale.zero is "false", want true`, ""},
		{"too many replicas", file, "${SECKILL_MAX:-5}", "${SECKILL_MAX:-20}", "takes 1 to 5", ""},
		{"maximum that no value changes", file, `"${SECKILL_MAX:-5}"`, `"5"`, "does not follow SECKILL_MAX", ""},
		{"key of Standard", file, `com.openfaas.scale.min: "1"`, "com.openfaas.scale.min: \"1\"\n      com.openfaas.scale.target: \"100\"", "com.openfaas.scale.target is refused", ""},
		{"another key of Standard", file, `com.openfaas.scale.min: "1"`, "com.openfaas.scale.min: \"1\"\n      com.openfaas.scale.zero-duration: 10m", "zero-duration is refused", ""},
		{"six fields on OpenFaaS", file, "@every 10s}", "*/10 * * * * *}", "schedule", ""},
		{"no topic", file, "topic: cron-function", "topic: cron", "triggered by cron", ""},
		{"bridge that scales", file, `com.openfaas.scale.max: "2"`, `com.openfaas.scale.max: "3"`, "no static function", ""},
		{"function that is not there", file, "  item-detail:\n", "  item-details:\n", "has the functions", ""},
		{"handler", file, "handler: ./functions\n", "handler: ./functions/seckill-http\n", "is not built by functions/Dockerfile", ""},
		{"build argument", file, "FUNCTION: item-detail", "FUNCTION: order-http", "is not built by functions/Dockerfile", ""},
		{"unknown field", file, "build_args:", "buildargs:", "buildargs", ""},
		{"substitution", file, "${SECKILL_MAX:-5}", "${SECKILL_MAX:-5", "substitute", ""},
		{"unknown variable", file, "DRAIN_DELAY: 5s", "DRAIN_DELAYS: 5s", "DRAIN_DELAYS is no variable", ""},
		{"no drain", file, "      DRAIN_DELAY: 5s\n", "", "DRAIN_DELAY is not set", ""},
		{"required variable missing", file, "      REDIS_ADDRS: ${REDIS_ADDRS:-redis.seckill:6379}\n", "", "REDIS_ADDRS", ""},
		{"secret missing", file, "      - mysql-dsn\n", "", "MYSQL_DSN", ""},
		{"secret of another function", file, "      - auth-hmac-secret\n", "      - auth-hmac-secret\n      - mysql-dsn\n", "mysql-dsn is no secret of seckill-http", ""},
		{"writable root", file, "readonly_root_filesystem: true", "readonly_root_filesystem: false", "readonly_root_filesystem", ""},
		{"wrong target", file, "function/order-consumer}", "function/order-http}", "is not order-consumer", ""},
	}, (*check).checkStack)
}

func TestMistakesInContext(t *testing.T) {
	t.Parallel()
	notice(t, []mistake{
		{"folder not copied", "stack.yml", "    - ./lua\n", "", "seckill/lua", ""},
		{"module file not copied", "stack.yml", "    - ./go.sum\n", "", "go.sum", ""},
		{"path that is not there", "stack.yml", "    - ./lua\n", "    - ./lua\n    - ./luas\n", "there is no ./luas", ""},
		{"forbidden path", "stack.yml", "    - ./lua\n", "    - ./lua\n    - ../lua\n", "forbids", ""},
		{"ignored scripts of Redis", "functions/Dockerfile.dockerignore", "!lua\n", "", "seckill/lua", ""},
		{"two lists that differ", ".dockerignore", "!lua\n", "", "differs", ""},
		{"import from outside", "functions/order-http/config.go", `"net/url"`, "\"net/url\"\n\n\t_ \"seckill/scripts/local\"", "seckill/scripts/local", ""},
		{"root in the image", "functions/Dockerfile", "USER 65532:65532\n", "", "USER 65532:65532", ""},
		{"dynamic binary", "functions/Dockerfile", "CGO_ENABLED=0", "CGO_ENABLED=1", "CGO_ENABLED=0", ""},
	}, (*check).checkStack, (*check).checkContext)
}

func TestMistakesInCompose(t *testing.T) {
	t.Parallel()
	const file, gateway = "scripts/compose.yaml", "scripts/compose/gateway.conf"
	notice(t, []mistake{
		{"unknown field", file, "    init: true", "    inits: true", "inits", ""},
		{"dependency that is not there", file, "depends_on: [expiry-cron]", "depends_on: [expiry]", "expiry", ""},
		{"unknown variable", file, "TARGET_URL:", "TARGET:", "TARGET is no variable of nats-bridge", ""},
		{"required variable missing", file, "  NATS_URL: nats://nats:4222", "  NATS_CREDS: \"\"", "NATS_URL", ""},
		{"Dockerfile", file, "dockerfile: functions/Dockerfile, args: {FUNCTION: order-http}", "dockerfile: Dockerfile, args: {FUNCTION: order-http}", "order-http builds image", ""},
		{"function that is not there", file, "args: {FUNCTION: item-detail}", "args: {FUNCTION: items}", "item-detail builds image", ""},
		{"file that is not there", file, "./compose/nats.conf", "./compose/nats.cfg", "which is not there", ""},
		{"writable root", file, "read_only: true", "read_only: false", "root that can be written", ""},
		{"path to another function", gateway, "http://item-detail:8080", "http://order-http:8080", "/items goes to", ""},
		{"service that is not there", gateway, "http://item-detail:8080", "http://items:8080", "goes to no service", ""},
		{"repeated requests", gateway, "proxy_next_upstream off;", "", "may repeat a POST", ""},
	}, (*check).checkCompose)
}
