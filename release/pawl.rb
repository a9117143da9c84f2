class Pawl < Formula
  desc "Runs code for the latest version of every object in a bucket"
  homepage "https://github.com/pawlhq/pawl"
  version "@VERSION@"
  license "Apache-2.0"

  os = OS.mac? ? "darwin" : "linux"
  arch = Hardware::CPU.arm? ? "arm64" : "amd64"
  url "https://github.com/pawlhq/pawl/releases/download/v#{version}/pawl_#{version}_#{os}_#{arch}.tar.gz"
  sha256({
    "darwin_amd64" => "@darwin_amd64@",
    "darwin_arm64" => "@darwin_arm64@",
    "linux_amd64"  => "@linux_amd64@",
    "linux_arm64"  => "@linux_arm64@",
  }["#{os}_#{arch}"])

  def install
    bin.install "pawl"
    generate_completions_from_executable(bin/"pawl", "completion")
  end

  test do
    assert_match "v#{version}", shell_output("#{bin}/pawl version")
  end
end
