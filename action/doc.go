// Package action contains code that the built-in actions share. Each action is a [pawl.Handler]
// in its own package:
//
//   - copyaction copies objects,
//   - imageaction converts pictures,
//   - execaction runs a program,
//   - httpaction posts to a web service,
//   - loadaction loads files into a table of PostgreSQL.
//
// # Use an action
//
// New returns the handler for a pipeline:
//
//	mirror, err := copyaction.New(copyaction.Config{})
//	…
//	pipeline := pawl.Pipeline{
//		Name: "mirror", Match: pawl.Match{Bucket: "photos"}, Handler: mirror, To: &pawl.Output{Bucket: "mirror"},
//	}
//
// # Describe an attempt to another program
//
// [Facts] are the facts of a task for a program that is not written in Go. The facts are environment
// variables of a command, or the body of a request:
//
//	facts := action.FactsOf(t)
//	command.Env = append(command.Env, facts.Environ()...)
package action
