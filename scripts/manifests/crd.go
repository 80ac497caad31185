package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// crdModules are Go modules that carry the CRDs of a kind. Go's module cache
// brings them here: they are not part of this repository.
var crdModules = []struct{ module, pattern string }{
	{"knative.dev/eventing@v0.50.0", "config/core/resources/*.yaml"},
	{"sigs.k8s.io/gateway-api@v1.4.0", "config/crd/standard/*.yaml"},
	{"github.com/kedacore/keda/v2@v2.18.0", "config/crd/bases/keda.sh_*.yaml"},
	{"github.com/envoyproxy/gateway@v1.6.0", "charts/gateway-helm/crds/generated/*.yaml"},
}

// schemas are the structural schemas of CRDs.
type schemas map[schema.GroupVersionKind]*spec.Schema

// readSchemas reads the CRDs once: those in the folder dir, if there is one,
// and those of crdModules. What cannot be had is named, not an error.
var readSchemas = sync.OnceValues(func() (schemas, []string) {
	found, missing := schemas{}, []string{}
	for _, m := range crdModules {
		dir, err := moduleDir(m.module)
		if err == nil {
			err = found.read(filepath.Join(dir, m.pattern))
		}
		if err != nil {
			missing = append(missing, fmt.Sprintf("CRDs of %s cannot be had: %v", m.module, err))
		}
	}
	dir := os.Getenv("CRDS_DIR")
	if dir == "" {
		dir = filepath.Join(repository, "..", "shared", "crds")
	}
	if err := found.read(filepath.Join(dir, "*.yaml")); err != nil {
		missing = append(missing, fmt.Sprintf("CRDs in CRDS_DIR: %v", err))
	}
	return found, missing
})

// moduleDir returns where Go keeps a module's files.
func moduleDir(module string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandMax)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	var answer struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &answer); jsonErr == nil && answer.Error != "" {
		return "", fmt.Errorf("%s", answer.Error)
	}
	return answer.Dir, err
}

func (s schemas) read(pattern string) error {
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		return fmt.Errorf("no file %s", pattern)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, document := range strings.Split(string(data), "\n---") {
			if err := s.add([]byte(document)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// add reads one CRD; other documents are passed over.
func (s schemas) add(document []byte) error {
	var crd struct {
		Kind string
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema *spec.Schema `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(document, &crd); err != nil || crd.Kind != "CustomResourceDefinition" {
		return err
	}
	for _, v := range crd.Spec.Versions {
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
		if v.Schema.OpenAPIV3Schema != nil && s[gvk] == nil {
			s[gvk] = v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// checkCRD checks an object by its schema. A kind whose schema cannot be had is
// noted as not checked.
func (c *check) checkCRD(o Object) {
	all, _ := readSchemas()
	s := all[o.GroupVersionKind()]
	if s == nil {
		c.unchecked[o.GroupVersionKind().String()+": no schema at hand"] = true
		return
	}
	content := o.Object
	for _, err := range validate.NewSchemaValidator(s, nil, "", strfmt.Default).Validate(content).Errors {
		c.found(o, "%v", err)
	}
	for _, field := range unknownFields(s, content, "") {
		c.found(o, "unknown field %s", field)
	}
}

// unknownFields names the fields that the API server would drop.
func unknownFields(s *spec.Schema, value any, path string) []string {
	if keep, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); keep {
		return nil
	}
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			below, ok := s.Properties[key]
			switch {
			case path == "" && (key == "metadata" || key == "kind" || key == "apiVersion"):
			case ok:
				found = append(found, unknownFields(&below, v, path+"."+key)...)
			case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
				found = append(found, unknownFields(s.AdditionalProperties.Schema, v, path+"."+key)...)
			case s.AdditionalProperties == nil || !s.AdditionalProperties.Allows:
				found = append(found, path+"."+key)
			}
		}
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			return nil
		}
		for _, v := range value {
			found = append(found, unknownFields(s.Items.Schema, v, path+"[]")...)
		}
	}
	return found
}
