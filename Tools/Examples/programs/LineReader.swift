import Foundation

/// The lines of a file, also of one that zstd has packed, as they are asked for.
final class LineReader {
  private let file: FileHandle
  private let unpacker: Process?
  private var rest = Data()
  /// The number of the line that came last, from 1.
  private(set) var number = 0

  /// Longer lines are no records.
  private static let mostBytes = 16 << 20

  struct Failure: Error, CustomStringConvertible { let description: String }

  init(_ path: String) throws {
    guard let found = FileHandle(forReadingAtPath: path) else {
      throw Failure(description: "\(path) cannot be read")
    }
    guard path.hasSuffix(".zst") else {
      (file, unpacker) = (found, nil)
      return
    }
    let (process, pipe) = (Process(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["zstd", "-dcq"]
    process.standardInput = found
    process.standardOutput = pipe
    try process.run()
    (file, unpacker) = (pipe.fileHandleForReading, process)
  }

  /// The next line; nil at the end.
  func next() throws -> Data? {
    var searched = rest.startIndex
    while true {
      if let end = rest[searched...].firstIndex(of: 0x0a) {
        defer { rest = rest[(end + 1)...] }
        number += 1
        return rest[..<end]
      }
      guard rest.count <= Self.mostBytes else {
        throw Failure(description: "line \(number + 1) is longer than \(Self.mostBytes) bytes")
      }
      let more = try file.read(upToCount: 1 << 20) ?? Data()
      guard !more.isEmpty else { break }
      let length = rest.count
      rest = Data(rest) + more
      searched = rest.startIndex + length
    }
    if let unpacker {
      unpacker.waitUntilExit()
      guard unpacker.terminationStatus == 0 else {
        throw Failure(description: "zstd cannot unpack it, after line \(number)")
      }
    }
    defer { rest = Data() }
    number += rest.isEmpty ? 0 : 1
    return rest.isEmpty ? nil : rest
  }
}
