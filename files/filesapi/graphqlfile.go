package filesapi

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/graph-gophers/graphql-go"

	"github.com/pawlhq/pawl/files"
)

// fileNode resolves a file.
type fileNode struct {
	s *server
	f *files.File
}

func (s *server) node(f *files.File) *fileNode { return &fileNode{s, f} }

func (n *fileNode) FileID() graphql.ID  { return graphql.ID(n.f.ID) }
func (n *fileNode) Entity() graphql.ID  { return graphql.ID(n.f.Entity) }
func (n *fileNode) State() string       { return strings.ToUpper(n.f.State.String()) }
func (n *fileNode) Size() size          { return size(n.f.Size) }
func (n *fileNode) ContentType() string { return n.f.ContentType }
func (n *fileNode) SHA256() string      { return hex.EncodeToString(n.f.SHA256[:]) }
func (n *fileNode) PartSize() *size {
	if n.f.PartSize == 0 {
		return nil
	}
	return new(size(n.f.PartSize))
}
func (n *fileNode) CreatedAt() graphql.Time { return graphql.Time{Time: n.f.CreatedAt} }

// DownloadURL signs only where a query asks for it.
func (n *fileNode) DownloadURL(ctx context.Context) (*string, error) {
	url, err := n.s.downloadURL(ctx, n.f)
	if err != nil {
		o := &operation{name: "sign", subject: budgetOf(ctx).subject, entity: n.f.Entity, file: n.f.ID}
		return nil, n.s.perform(ctx, o, func() (int, error) { return 0, err })
	}
	if url == "" {
		return nil, nil
	}
	return &url, nil
}

// entityNode resolves an entity, of which only its lists tell whether it is there.
type entityNode struct {
	s  *server
	id string
}

func (r *root) Entity(args struct{ ID graphql.ID }) (*entityNode, error) {
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
	err = n.s.resolve(ctx, "list", min(int64(limit), maxPage), func(o *operation) error {
		found, err := n.s.listFiles(ctx, o, n.id, after, limit)
		c = &connection{n.s, n.id, after != "", found}
		return err
	})
	return c, err
}

// connection resolves a page of files.
type connection struct {
	s        *server
	entity   string
	previous bool
	page     page
}

type edge struct {
	Node   *fileNode
	Cursor string
}

func (c *connection) Edges() []edge {
	edges := make([]edge, len(c.page.files))
	for i := range edges {
		edges[i] = edge{c.s.node(&c.page.files[i]), c.cursor(i)}
	}
	return edges
}

func (c *connection) cursor(i int) string { return c.s.cursors.sign(c.entity, c.page.files[i].ID) }

type pageInfo struct {
	HasNextPage, HasPreviousPage bool
	StartCursor, EndCursor       *string
}

func (c *connection) PageInfo() *pageInfo {
	p := &pageInfo{HasNextPage: c.page.more, HasPreviousPage: c.previous}
	if n := len(c.page.files); n > 0 {
		first, last := c.cursor(0), c.cursor(n-1)
		p.StartCursor, p.EndCursor = &first, &last
	}
	return p
}
