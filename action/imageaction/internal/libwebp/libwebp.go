// Package libwebp encodes WebP pictures with Google's libwebp 1.4.0, compiled to WebAssembly; see
// README.md. It needs no cgo, can access only its own memory, and returns the same bytes on every
// machine.
package libwebp

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"io"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// MaxSide is the maximum width and height, in pixels.
const MaxSide = 16383

// Values of libwebp's parameter "method", 0 (fast) to 6 (slow), measured with a photograph of
// 1,024 × 768 pixels: the processor time in ms, and the size in KB for the same error (37.6 dB).
//
//	method    0      1      2     3     4     5     6
//	time     57     76    106   271   274   294   388
//	size  119.9  117.6  110.3  99.4  99.3  99.5  97.9
//
// With a noisy alpha channel, method 6 takes up to 17 times as long as method 4.
const (
	defaultMethod   = 4
	lowMemoryMethod = 0 // without statistics of all blocks
)

// Limit of an instance's memory. At quality 100, noise with a noisy alpha channel needs 41 bytes
// per pixel with method 4, and 27 with method 0.
const (
	bytesPerPixel = 28
	fixedBytes    = 4 << 20
)

//go:embed webp.wasm.gz
var compressed []byte

// Instances of a library share only its code.
type library struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
}

// load takes about 0.3 s.
var load = sync.OnceValues(func() (*library, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	wasm, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	ctx := context.Background() // the module outlives the first call
	runtime := wazero.NewRuntime(ctx)
	module, err := runtime.CompileModule(ctx, wasm)
	if err != nil {
		return nil, err
	}
	return &library{runtime, module}, nil
})

// Encode returns a lossy WebP picture with sides of 1 to [MaxSide] and a quality of 1 to 100. It
// calls fill once to write the picture, which is valid only during that call: BT.601 with luma 16
// to 235, chroma 16 to 240, and alpha.
//
// Each call uses at most 28 bytes per pixel plus 4 MiB. An encoding cannot be interrupted,
// because checks inside WebAssembly would make it three times as slow.
func Encode(ctx context.Context, width, height, quality int, fill func(*image.NYCbCrA)) ([]byte, error) {
	if width < 1 || height < 1 || width > MaxSide || height > MaxSide {
		return nil, fmt.Errorf("picture of %d × %d pixels: want sides of 1 to %d", width, height, MaxSide)
	}
	lib, err := load()
	if err != nil {
		return nil, fmt.Errorf("compile libwebp: %w", err)
	}
	memory, err := newMemory(fixedBytes + bytesPerPixel*width*height)
	if err != nil {
		return nil, fmt.Errorf("reserve memory for libwebp: %w", err)
	}
	defer memory.Free()
	module, err := lib.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), lib.module, wazero.NewModuleConfig())
	if err != nil {
		return nil, fmt.Errorf("start libwebp: %w", err)
	}
	defer func() { _ = module.Close(ctx) }()
	return instance{module}.encode(ctx, width, height, quality, fill)
}

// ErrMemory is returned if the memory limit does not suffice. No such picture is known.
var ErrMemory = fmt.Errorf("libwebp needs more memory than %d bytes a pixel", bytesPerPixel)

type instance struct{ api.Module }

func (i instance) encode(ctx context.Context, width, height, quality int, fill func(*image.NYCbCrA)) ([]byte, error) {
	picture, err := i.malloc(ctx, pictureBytes(width, height))
	if err != nil {
		return nil, err
	}
	size, err := i.malloc(ctx, 4)
	if err != nil {
		return nil, err
	}
	planes, _ := i.Memory().Read(picture, pictureBytes(width, height))
	fill(planesOf(planes, width, height))
	for _, method := range []uint64{defaultMethod, lowMemoryMethod} {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		const yuv420a, lossy, inexact = 4, 0, 0
		result, err := i.call(ctx, "encode", uint64(picture), uint64(width), uint64(height), uint64(size), // of the result
			yuv420a, uint64(quality), method, lossy, inexact)
		if err != nil {
			return nil, err
		}
		if result == 0 { // out of memory
			continue
		}
		n, _ := i.Memory().ReadUint32Le(size)
		file, ok := i.Memory().Read(result, n)
		if !ok {
			return nil, errors.New("libwebp returned an invalid address")
		}
		return bytes.Clone(file), nil
	}
	return nil, ErrMemory
}

func (i instance) malloc(ctx context.Context, n uint32) (address uint32, err error) {
	address, err = i.call(ctx, "malloc", uint64(n))
	if err == nil && address == 0 {
		err = ErrMemory
	}
	return address, err
}

// The functions of webp.c return one 32-bit value.
func (i instance) call(ctx context.Context, function string, args ...uint64) (uint32, error) {
	results, err := i.ExportedFunction(function).Call(ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("libwebp: %s: %w", function, err)
	}
	return api.DecodeU32(results[0]), nil
}

func pictureBytes(width, height int) uint32 {
	return uint32(2*width*height + 2*((width+1)/2)*((height+1)/2))
}

// webp.c expects the planes one after the other.
func planesOf(b []uint8, width, height int) *image.NYCbCrA {
	luma, chroma := width*height, ((width+1)/2)*((height+1)/2)
	plane := func(n int) (p []uint8) {
		p, b = b[:n:n], b[n:]
		return p
	}
	return &image.NYCbCrA{
		YCbCr: image.YCbCr{
			Y: plane(luma), Cb: plane(chroma), Cr: plane(chroma),
			YStride: width, CStride: (width + 1) / 2,
			SubsampleRatio: image.YCbCrSubsampleRatio420,
			Rect:           image.Rect(0, 0, width, height),
		},
		A: plane(luma), AStride: width,
	}
}
