package webhooksource_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/source/webhooksource"
)

func TestNew(t *testing.T) {
	type config = webhooksource.Config
	const valid = ""
	tests := []struct {
		name string
		cfg  config
		want string // part of the error
	}{
		{"default", config{}, valid},
		{"localhost", config{Listen: "localhost:0"}, valid},
		{"IPv6 loopback", config{Listen: "[::1]:0"}, valid},
		{"another address in 127/8", config{Listen: "127.3.2.1:0"}, valid},
		{"mapped loopback", config{Listen: "[::ffff:127.0.0.1]:0"}, valid},
		{"all addresses", config{Listen: "0.0.0.0:8081"}, "set a token or a secret, or listen on 127.0.0.1"},
		{"all IPv6 addresses", config{Listen: "[::]:8081"}, "set a token or a secret"},
		{"port alone", config{Listen: ":8081"}, "set a token or a secret"},
		{"public address", config{Listen: "192.0.2.1:8081"}, "set a token or a secret"},
		{"public name", config{Listen: "pawl.example.com:8081"}, "set a token or a secret"},
		{"name that begins with localhost", config{Listen: "localhost.example.com:80"}, "set a token or a secret"},
		{"all addresses with a token", config{Listen: ":8081", Token: "t0ken"}, valid},
		{"all addresses with a secret", config{Listen: ":8081", Secret: secret}, valid},
		{"no port", config{Listen: "127.0.0.1"}, "want host:port"},
		{"no path", config{Path: "events"}, "want a path such as /events"},
		{"path with a query", config{Path: "/events?x"}, "want a path such as /events"},
		{"token of three words", config{Token: "Bearer s3cr3t x"}, "must be one word, or a scheme and one word"},
		{"blank token", config{Token: "  "}, "must be one word"},
		{"token with a newline", config{Token: "s3cr3t\n"}, "no HTTP header can carry"},
		{"secret that is not base64", config{Secret: "whsec_s3cr3t!"}, "24 random bytes in base64"},
		{"short secret", config{Secret: "whsec_c2VjcmV0"}, "at least 24 random bytes"},
		{"unknown dialect", config{Dialect: "s4"}, `unknown dialect "s4"`},
		{"negative shutdown timeout", config{ShutdownTimeout: -time.Second}, "shutdown timeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := webhooksource.New(tt.cfg)
			switch {
			case (err == nil) != (tt.want == valid):
				t.Errorf("error %v, want %q", err, tt.want)
			case err == nil:
			case !strings.Contains(err.Error(), tt.want):
				t.Errorf("error %q does not say %q", err, tt.want)
			case strings.Contains(err.Error(), "s3cr3t"):
				t.Errorf("error %q contains a secret", err)
			}
		})
	}
}

func TestAddressInUse(t *testing.T) {
	e := serve(t, webhooksource.Config{}, ackAll{})
	second, err := webhooksource.New(webhooksource.Config{Listen: e.Addr().String(), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	err = second.Run(t.Context(), ackAll{})
	if err == nil || !strings.Contains(err.Error(), "stop it, or listen on another port") {
		t.Errorf("error %v does not say what to do", err)
	}
	if second.Addr() != nil {
		t.Errorf("Addr returned %s before listening", second.Addr())
	}
}

func TestAddressOfAnotherMachine(t *testing.T) {
	s, err := webhooksource.New(webhooksource.Config{Listen: "192.0.2.1:0", Token: "t0ken", Logger: quiet}) // TEST-NET-1
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), ackAll{}); err == nil || !strings.Contains(err.Error(), "listen on one of its own") {
		t.Errorf("error %v does not say what to do", err)
	}
}

func TestRunsOnce(t *testing.T) {
	e := serve(t, webhooksource.Config{}, ackAll{})
	if err := e.Run(t.Context(), ackAll{}); err == nil {
		t.Error("ran twice")
	}
}
