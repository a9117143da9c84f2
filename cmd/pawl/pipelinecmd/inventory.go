package pipelinecmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/audit/inventory"
	"github.com/pawlhq/pawl/cmd/pawl/app"
	"github.com/pawlhq/pawl/event"
)

// openInventory makes the report of --inventory the audit's listing. The caller closes it.
func openInventory(ctx context.Context, m *app.Runtime, o *auditOptions) (*inventory.Report, error) {
	bucket, err := auditedBucket(m, o.Pipelines)
	if err != nil {
		return nil, err
	}
	expect := inventory.Expect{Bucket: bucket}
	var r *inventory.Report
	if strings.HasPrefix(o.inventory, "s3://") {
		var manifest []event.Object
		if manifest, err = app.ObjectCandidates(o.inventory); err != nil {
			return nil, err
		}
		m.Log.Info("reading the inventory", "manifest", manifest[0].String())
		r, err = inventory.OpenBucket(ctx, m.Objects, manifest[0], expect)
	} else {
		m.Log.Info("reading the inventory", "folder", o.inventory)
		r, err = inventory.OpenFolder(ctx, o.inventory, expect)
	}
	if err != nil {
		return nil, err
	}
	o.Listing, o.AsOf = r, r.Created
	o.ListingName = "the inventory of " + r.Created.Format(time.RFC3339)
	return r, nil
}

// All pipelines, or those in names, must read one bucket.
func auditedBucket(m *app.Runtime, names []string) (bucket string, err error) {
	for i := range m.Parts.Pipelines {
		p := &m.Parts.Pipelines[i]
		switch {
		case len(names) > 0 && !slices.Contains(names, p.Name), p.Match.Bucket == bucket:
		case bucket == "":
			bucket = p.Match.Bucket
		default:
			return "", app.Usage("--inventory: an inventory covers one bucket, but the pipelines read %s and %s: select pipelines with --pipeline", event.Quote(bucket), event.Quote(p.Match.Bucket))
		}
	}
	return bucket, nil
}
