module github.com/pawlhq/pawl/release/check

go 1.26.0

require github.com/pawlhq/pawl v0.0.0

replace github.com/pawlhq/pawl => ../..
