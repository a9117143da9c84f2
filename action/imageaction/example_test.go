package imageaction_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"log"

	"github.com/pawlhq/pawl/action/imageaction"
)

// ExampleConvert converts one picture. New returns a handler that does the same for each object of a pipeline.
func ExampleConvert() {
	red := image.NewRGBA(image.Rect(0, 0, 400, 200))
	draw.Draw(red, red.Bounds(), image.NewUniform(color.RGBA{R: 255, A: 255}), image.Point{}, draw.Src)
	var original bytes.Buffer
	if err := png.Encode(&original, red); err != nil {
		log.Fatal(err)
	}
	small, contentType, err := imageaction.Convert(context.Background(), &original, imageaction.Config{Grayscale: true, Width: 100})
	if err != nil {
		log.Fatal(err)
	}
	gray, err := png.Decode(bytes.NewReader(small))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(contentType, gray.Bounds().Size(), gray.At(50, 25))
	// Output: image/png (100,50) {76}
}
