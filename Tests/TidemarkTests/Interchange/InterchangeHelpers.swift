import Foundation
import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkNDJSON

/// An entry with its bytes, for comparisons.
struct PlainEntry: Hashable {
  var operation = DecodedLine.Operation.put
  var entryClass = EntryAttributes.Class.owned
  var key: [UInt8] = []
  var value: [UInt8] = []
  var hash: [UInt8] = []
  var labels: [[UInt8]] = []
  var time: Timestamp?
  var maxAge: UInt32?
}

extension DecodedLines {
  func entry(_ index: Int) -> PlainEntry {
    let line = lines[index]
    return PlainEntry(
      operation: line.operation, entryClass: line.entryClass,
      key: [UInt8](copying: bytes(line.key)), value: [UInt8](copying: bytes(line.value)),
      hash: [UInt8](copying: bytes(line.hash)), labels: labelSets.labels(inSet: line.labelSet),
      time: line.time, maxAge: line.maxAge)
  }

  var entries: [PlainEntry] { lines.indices.map { entry($0) } }

  mutating func append(_ text: String, number: Int = 1) throws(LineError) {
    try append(bytes: Array(text.utf8), number: number)
  }

  mutating func append(bytes: [UInt8], number: Int = 1) throws(LineError) {
    try append(line: bytes.rawSpan, number: number)
  }
}

extension NDJSONWriter {
  mutating func append(_ entry: PlainEntry) {
    append(
      Header(
        entry.operation, entryClass: entry.entryClass, time: entry.time, maxAge: entry.maxAge),
      key: entry.key.rawSpan, value: entry.value.rawSpan, hash: entry.hash.rawSpan,
      labels: entry.labels)
  }
}

/// The entry of one line.
func decode(_ text: String) throws(LineError) -> PlainEntry {
  try decode(bytes: Array(text.utf8))
}

func decode(bytes: [UInt8]) throws(LineError) -> PlainEntry {
  var lines = DecodedLines()
  try lines.append(bytes: bytes)
  return lines.entry(0)
}

/// The fault of a line; nil when nothing is.
func refusal(_ text: String) -> LineError? { refusal(bytes: Array(text.utf8)) }

func refusal(bytes: [UInt8]) -> LineError? {
  do throws(LineError) {
    _ = try decode(bytes: bytes)
    return nil
  } catch {
    return error
  }
}

func utf8(_ text: String) -> [UInt8] { Array(text.utf8) }

/// Splits a text that comes in pieces of the given size.
func split(
  _ bytes: [UInt8], pieces: Int = .max, using splitter: LineSplitter = LineSplitter()
) throws(LineError) -> [LineChunk] {
  var splitter = splitter
  var chunks: [LineChunk] = []
  var offset = 0
  while offset < bytes.count {
    let count = min(pieces, bytes.count - offset)
    splitter.append(bytes.rawSpan.extracting(offset..<offset + count))
    offset += count
    while let chunk = try splitter.next() { chunks.append(chunk) }
  }
  splitter.finish()
  while let chunk = try splitter.next() { chunks.append(chunk) }
  return chunks
}

/// A real file that the tests read.
enum Fixture {
  static func bytes(_ name: String) throws -> [UInt8] {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let file = folder.appending(path: "Fixtures/\(name)")
    let stored = [UInt8](try Data(contentsOf: file))
    guard name.hasSuffix(".zst") else { return stored }
    let decoder = ZstdStreamDecoder()
    var bytes: [UInt8] = []
    var offset = 0
    while offset < stored.count {
      let step = try decoder.decode(
        stored.rawSpan.extracting(offset..<stored.count), appendingTo: &bytes, atMost: 1 << 20)
      offset += step.consumed
    }
    try decoder.finish()
    return bytes
  }
}
