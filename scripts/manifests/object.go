package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Object is one manifest.
type Object struct {
	unstructured.Unstructured
	text []byte
}

func newObject(text []byte) (Object, error) {
	o := Object{text: text}
	if err := yaml.UnmarshalStrict(text, &o.Object); err != nil {
		return o, fmt.Errorf("read manifest: %w", err)
	}
	return o, nil
}

// String names the object in findings.
func (o Object) String() string { return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName() }

// at returns the value below the given keys, nil if there is none.
func (o Object) at(keys ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, keys...)
	return value
}

// text below the given keys, empty if there is none.
func (o Object) textAt(keys ...string) string {
	text, _ := o.at(keys...).(string)
	return text
}

// isKnative reports whether o is a function on Knative.
func (o Object) isKnative() bool {
	return o.GetKind() == "Service" && o.GroupVersionKind().Group == "serving.knative.dev"
}

// pod returns the pod template of whatever runs one, nil for all else.
func (o Object) pod() *corev1.PodTemplateSpec {
	var at any
	switch {
	case o.isKnative(), o.GetKind() == "Deployment", o.GetKind() == "StatefulSet", o.GetKind() == "Job":
		at = o.at("spec", "template")
	case o.GetKind() == "CronJob":
		at = o.at("spec", "jobTemplate", "spec", "template")
	}
	raw, ok := at.(map[string]any)
	if !ok {
		return nil
	}
	var template corev1.PodTemplateSpec
	// What is not of a pod (Knative's own fields) is left out; unknown fields
	// are found by the strict decoding of the whole object.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &template); err != nil {
		return nil
	}
	return &template
}
