package bucket

// Tests copy small objects in parts.
func init() { minCopyParts = 1 }
