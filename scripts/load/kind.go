package main

import (
	"net/http"

	"seckill/scripts/load/drive"
)

// The ways in which an arrival may end.
const (
	kindWon drive.Kind = iota
	kindHeld
	kindSoldOut
	kindLimit
	kindNotOpen
	kindClosed
	kindRate
	kindItem
	kindStatus
	kindPaid
	kindCancelled
	kindConflict
	kindRefused
	kindUnknown
	kinds
)

func kindNames() []string {
	names := make([]string, kinds)
	names[kindWon] = "won (202)"
	names[kindHeld] = "holds one already (200)"
	names[kindSoldOut] = "sold out (409)"
	names[kindLimit] = "limit reached (403)"
	names[kindNotOpen] = "not open yet (425)"
	names[kindClosed] = "closed (410)"
	names[kindRate] = "too many (429)"
	names[kindItem] = "item read"
	names[kindStatus] = "status read"
	names[kindPaid] = "paid"
	names[kindCancelled] = "cancelled"
	names[kindConflict] = "pay or cancel came too late (409)"
	names[kindRefused] = "other refusal (4xx)"
	names[kindUnknown] = "no definite answer (5xx, none)"
	return names
}

// group gathers kinds for a plot.
type group struct {
	name  string
	kinds []drive.Kind
}

func groups() []group {
	return []group{
		{"winners", []drive.Kind{kindWon}},
		{"refusals", []drive.Kind{kindHeld, kindSoldOut, kindLimit, kindNotOpen, kindClosed, kindRate, kindConflict, kindRefused}},
		{"reads", []drive.Kind{kindItem, kindStatus}},
		{"payments, cancels", []drive.Kind{kindPaid, kindCancelled}},
		{"unknown", []drive.Kind{kindUnknown}},
	}
}

// claimKind is what a status says to whoever claimed.
func claimKind(status int) drive.Kind {
	switch status {
	case http.StatusAccepted:
		return kindWon
	case http.StatusOK:
		return kindHeld
	case http.StatusConflict:
		return kindSoldOut
	case http.StatusForbidden:
		return kindLimit
	case http.StatusTooEarly:
		return kindNotOpen
	case http.StatusGone:
		return kindClosed
	default:
		return otherKind(status)
	}
}

// otherKind is what a status says that is not the hoped-for one.
func otherKind(status int) drive.Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return kindRate
	case status == http.StatusConflict:
		return kindConflict
	case status >= 400 && status < 500:
		return kindRefused
	default:
		return kindUnknown
	}
}
