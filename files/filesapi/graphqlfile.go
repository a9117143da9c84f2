package filesapi

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/graph-gophers/graphql-go"

	"github.com/pawlhq/pawl/files"
)

// fileNode has fields instead of methods. The library calls methods with a context or an error in a
// goroutine for each file.
type fileNode struct {
	FileID      graphql.ID
	Entity      graphql.ID
	State       string
	Size        size
	ContentType string
	SHA256      string
	PartSize    *size
	CreatedAt   graphql.Time
	DownloadURL *string
}

func sampleFile() *fileNode { return &fileNode{State: "PENDING"} }

func (s *server) node(ctx context.Context, f *files.File, sign bool) (*fileNode, error) {
	n := &fileNode{
		FileID: graphql.ID(f.ID), Entity: graphql.ID(f.Entity), State: strings.ToUpper(f.State.String()), Size: size(f.Size),
		ContentType: f.ContentType, SHA256: hex.EncodeToString(f.SHA256[:]), CreatedAt: graphql.Time{Time: f.CreatedAt},
	}
	if f.PartSize > 0 {
		n.PartSize = new(size(f.PartSize))
	}
	if !sign {
		return n, nil
	}
	url, err := s.downloadURL(ctx, budgetOf(ctx).subject, f)
	if url != "" {
		n.DownloadURL = &url
	}
	return n, err
}

// Any valid name is an entity.
type entityNode struct {
	s  *server
	id string
}

func (r *root) Entity(ctx context.Context, args struct{ ID graphql.ID }) (*entityNode, error) {
	if budgetOf(ctx).estimate != nil {
		return &entityNode{s: r.s}, nil // the library panics for an ID with control characters
	}
	if err := checkEntity(string(args.ID)); err != nil {
		return nil, err
	}
	return &entityNode{r.s, string(args.ID)}, nil
}

func (n *entityNode) ID() graphql.ID { return graphql.ID(n.id) }

type listArgs struct {
	First int32
	After *string
}

func (n *entityNode) Files(ctx context.Context, args listArgs) (c *connection, err error) {
	limit, after := int(args.First), ""
	if args.After != nil {
		after = *args.After
	}
	c = &connection{Edges: []edge{{Node: sampleFile()}}, PageInfo: &pageInfo{}}
	err = n.s.resolve(ctx, "list", limit, func(o *operation) error {
		if err := n.s.limit(o.subject).acquireListSlot(ctx); err != nil {
			return err
		}
		found, err := n.s.listFiles(ctx, o, n.id, after, limit)
		if err != nil {
			return err
		}
		c = &connection{Edges: make([]edge, len(found.files)), PageInfo: &pageInfo{HasNextPage: found.more, HasPreviousPage: after != ""}}
		return c.fill(ctx, n, found.files)
	})
	return c, err
}

type connection struct {
	Edges    []edge
	PageInfo *pageInfo
}

type edge struct {
	Node   *fileNode
	Cursor string
}

func (c *connection) fill(ctx context.Context, n *entityNode, found []files.File) (err error) {
	sign := graphql.HasSelectedField(ctx, "edges.node.downloadURL")
	for i := range found {
		e := &c.Edges[i]
		e.Cursor = n.s.cursors.sign(n.id, found[i].ID)
		if e.Node, err = n.s.node(ctx, &found[i], sign); err != nil {
			return err
		}
		c.PageInfo.EndCursor = &e.Cursor
	}
	if len(found) > 0 {
		c.PageInfo.StartCursor = &c.Edges[0].Cursor
	}
	return nil
}

type pageInfo struct {
	HasNextPage, HasPreviousPage bool
	StartCursor, EndCursor       *string
}
