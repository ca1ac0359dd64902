// Durable timers from Go, with nothing but the standard library.
//
// Schedules a timer, takes it when it is due, and acknowledges it. TOURBILLON_SERVER and TOURBILLON_TOKEN configure it.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

var client = &http.Client{Timeout: 30 * time.Second}

// Problem is an error response, with the server's message.
type Problem struct{ Code, Detail string }

func (p Problem) Error() string { return p.Code + ": " + p.Detail }

// call sends a body, if there is one, and reads the response.
func call(method, path string, body, answer any) error {
	server := os.Getenv("TOURBILLON_SERVER")
	if server == "" {
		server = "http://127.0.0.1:7420"
	}
	var data bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&data).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, server+path, &data)
	if err != nil {
		return err
	}
	request.Header.Set("content-type", "application/json")
	if token := os.Getenv("TOURBILLON_TOKEN"); token != "" {
		request.Header.Set("authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		var problem Problem
		if err := json.NewDecoder(response.Body).Decode(&problem); err != nil {
			return err
		}
		return problem
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

type object map[string]any

func main() {
	// With a caller-chosen key, a repeated POST creates no second timer: `keep` returns the existing one.
	var made struct{ Key string }
	timer := object{"key": "welcome", "in": "100ms", "payload": object{"to": "ann"}}
	if err := call("POST", "/v1/queues/go/timers?on_conflict=keep", timer, &made); err != nil {
		log.Fatal(err)
	}
	fmt.Println("scheduled", made.Key)

	// A worker does this in a loop. The server waits up to 20 s for a timer; the lease is how long we hold it.
	var got struct {
		Deliveries []struct {
			Token, Key string
			Payload    struct{ To string }
		}
	}
	if err := call("POST", "/v1/queues/go/receive", object{"wait": "20s", "lease": "30s"}, &got); err != nil {
		log.Fatal(err)
	}
	for _, work := range got.Deliveries {
		fmt.Println("received", work.Key, "for", work.Payload.To)
		var settled struct{ Acked int }
		if err := call("POST", "/v1/queues/go/ack", object{"tokens": []string{work.Token}}, &settled); err != nil {
			log.Fatal(err)
		}
		fmt.Println("acknowledged", settled.Acked)
	}

	if problem, refused := call("GET", "/v1/queues/go/timers/nobody", nil, &object{}).(Problem); refused {
		fmt.Println("refused", problem.Code)
	}
}
