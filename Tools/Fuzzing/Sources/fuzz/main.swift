#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif
import TidemarkTestKit

// SAFETY: libFuzzer lends each input for the time of the call, and the bytes are copied before
// anything is done with them. `argc` and `argv` are the process's own.

/// libFuzzer's loop, which `-sanitize=fuzzer` links in.
@_silgen_name("LLVMFuzzerRunDriver")
func runFuzzer(
  _ argc: UnsafeMutablePointer<CInt>,
  _ argv: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// The target that the first argument names: `--target=NAME`, since libFuzzer passes over what
/// begins so, and hands it to the processes that it starts.
enum Chosen {
  private static let prefix = "--target="

  static let target = CommandLine.arguments.dropFirst().first { $0.hasPrefix(prefix) }
    .flatMap { FuzzTarget(rawValue: String($0.dropFirst(prefix.count))) }
}

/// Feeds one input to the target.
func feed(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let input = unsafe [UInt8](UnsafeBufferPointer(start: bytes, count: count))
  do {
    try Chosen.target?.run(input)
  } catch {
    print("ERROR: \(Chosen.target?.rawValue ?? ""): \(error)")
    fflush(nil)
    // The fuzzer notices the signal and keeps the input.
    abort()
  }
  return 0
}

/// Writes the target's seeds into a directory.
func writeSeeds(_ target: FuzzTarget, _ directory: String) -> Bool {
  for (number, seed) in target.seeds().enumerated() {
    let name = "\(directory)/seed-\(number < 10 ? "0" : "")\(number)"
    guard let file = unsafe fopen(name, "wb") else { return false }
    let written = unsafe fwrite(seed, 1, seed.count, file)
    guard unsafe fclose(file) == 0, written == seed.count else { return false }
  }
  return true
}

guard let chosen = Chosen.target else {
  let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: "|")
  print("usage: fuzz --target=\(names) [--seeds DIR | arguments of libFuzzer]")
  exit(64)
}
if CommandLine.arguments.count == 4, CommandLine.arguments[2] == "--seeds" {
  exit(writeSeeds(chosen, CommandLine.arguments[3]) ? 0 : 74)
}
var argc = CommandLine.argc
var argv = unsafe CommandLine.unsafeArgv
exit(unsafe runFuzzer(&argc, &argv, feed))
