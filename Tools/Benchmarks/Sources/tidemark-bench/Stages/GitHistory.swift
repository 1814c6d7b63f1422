import Foundation

/// A repository's log as puts and deletes, oldest commit first.
struct GitHistory {
  struct Change {
    var path: String
    /// The name of the new contents; nil when the file went.
    var blob: String?
  }

  private let repository: String
  private let scratch: String
  let commits: [[Change]]
  private(set) var blobs: [String: [UInt8]] = [:]

  init(_ repository: String, scratch: String) throws {
    self.repository = repository
    self.scratch = scratch
    let log = try Self.git(
      [
        "-C", repository, "log", "--reverse", "--first-parent", "-m", "--raw", "--no-renames",
        "--no-abbrev", "-z", "--format=%H",
      ], scratch)
    commits = Self.commits(log)
    let names = Set(commits.joined().compactMap(\.blob)).sorted()
    let list = names.joined(separator: "\n") + "\n"
    let contents = try Self.git(["-C", repository, "cat-file", "--batch"], scratch, input: list)
    blobs = Self.blobs(contents)
  }

  var versions: Int { commits.joined().count { $0.blob != nil } }

  var rawBytes: Int {
    commits.joined().reduce(0) { sum, change in
      sum + (change.blob.flatMap { blobs[$0]?.count } ?? 0)
    }
  }

  /// How large git's pack of this history is.
  func packBytes() throws -> Int {
    let copy = scratch + "/copy.git"
    _ = try Self.git(
      ["clone", "--quiet", "--bare", "--no-local", "--single-branch", repository, copy], scratch)
    _ = try Self.git(["-C", copy, "gc", "--quiet", "--aggressive", "--prune=now"], scratch)
    var sum = 0
    Disk.forEachFile(copy + "/objects/pack") { path in
      guard path.hasSuffix(".pack") else { return }
      let attributes = try? FileManager.default.attributesOfItem(atPath: path)
      sum += (attributes?[.size] as? Int) ?? 0
    }
    guard sum > 0 else { throw BenchError("git made no pack") }
    return sum
  }

  /// Parses `:100644 100644 OLD NEW M`, the path, and so on, each ended by a zero.
  private static func commits(_ log: Data) -> [[Change]] {
    var commits: [[Change]] = []
    var meta: [Substring]?
    for field in log.split(separator: 0) {
      let text = String(decoding: field, as: UTF8.self)
      if let words = meta {
        meta = nil
        // A submodule has no contents here.
        guard words.count == 5, words[1] != "160000", !commits.isEmpty else { continue }
        let isGone = words[4].hasPrefix("D")
        commits[commits.count - 1].append(
          Change(path: text, blob: isGone ? nil : String(words[3])))
      } else if let colon = text.firstIndex(of: ":") {
        if colon != text.startIndex { commits.append([]) }
        meta = text[text.index(after: colon)...].split(separator: " ")
      } else {
        commits.append([])
      }
    }
    return commits
  }

  /// Parses `NAME blob LENGTH`, a line break, the contents and another line break, and so on.
  private static func blobs(_ output: Data) -> [String: [UInt8]] {
    var blobs: [String: [UInt8]] = [:]
    var rest = output[...]
    while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
      let words = String(decoding: rest[..<end], as: UTF8.self).split(separator: " ")
      rest = rest[(end + 1)...]
      guard words.count == 3, let length = Int(words[2]), rest.count > length else { continue }
      blobs[String(words[0])] = [UInt8](rest.prefix(length))
      rest = rest.dropFirst(length + 1)
    }
    return blobs
  }

  /// Runs git; through files, since pipes that nobody empties fill up.
  private static func git(
    _ arguments: [String], _ scratch: String, input: String = ""
  ) throws -> Data {
    let from = scratch + "/input"
    let to = scratch + "/output"
    try Data(input.utf8).write(to: URL(filePath: from))
    try Data().write(to: URL(filePath: to))
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["git"] + arguments
    process.standardInput = try FileHandle(forReadingFrom: URL(filePath: from))
    process.standardOutput = try FileHandle(forWritingTo: URL(filePath: to))
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw BenchError("git \(arguments.joined(separator: " ")) failed")
    }
    return try Data(contentsOf: URL(filePath: to))
  }
}
