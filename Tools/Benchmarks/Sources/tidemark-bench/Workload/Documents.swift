import Foundation

/// Real records, one JSON document a line of a file.
final class Documents: Sendable {
  private let bytes: [UInt8]
  /// Where each line begins, and where the last ends.
  private let starts: [Int]

  init(_ path: String) throws {
    bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
    var starts = [0]
    for (place, byte) in bytes.enumerated() where byte == UInt8(ascii: "\n") {
      starts.append(place + 1)
    }
    if starts.last != bytes.count { starts.append(bytes.count + 1) }
    self.starts = starts
    guard count > 0 else { throw BenchError("\(path) has no lines") }
  }

  var count: Int { starts.count - 1 }

  /// The mean length of a line.
  var mean: Int { bytes.count / count }

  func length(_ index: Int) -> Int { starts[index + 1] - starts[index] - 1 }

  func write(_ index: Int, to target: UnsafeMutableRawPointer) {
    bytes.withUnsafeBytes { source in
      guard let start = source.baseAddress else { return }
      target.copyMemory(from: start + starts[index], byteCount: length(index))
    }
  }
}

/// A reason why a measurement cannot be had.
struct BenchError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
