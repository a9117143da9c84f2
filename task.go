package pawl

import "github.com/pawlhq/pawl/worker"

// Types of package worker for handlers.
type (
	// Handler performs a pipeline's effect for one object.
	Handler = worker.Handler
	// HandlerFunc is a function as a Handler.
	HandlerFunc = worker.HandlerFunc
	// Task is one attempt at one object.
	Task = worker.Task
)
