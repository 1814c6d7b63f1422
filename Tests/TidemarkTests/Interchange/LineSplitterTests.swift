import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkNDJSON
import TidemarkTestKit

@Suite("Splitting into lines")
struct LineSplitterTests {
  /// The lines that are not empty, each with its number.
  private func lines(_ chunks: [LineChunk]) -> [(Int, [UInt8])] {
    chunks.flatMap { chunk in
      chunk.lineEnds.indices.compactMap { index in
        let line = [UInt8](copying: chunk.line(index))
        return line.isEmpty ? nil : (chunk.firstNumber + index, line)
      }
    }
  }

  @Test("lines end with a line feed, with or without carriage return; the last may have none")
  func lineEnds() throws {
    for pieces in 1...20 {
      let found = lines(try split(utf8("a\nbb\r\n\r\n\nccc\rd\ne"), pieces: pieces))
      #expect(found.map(\.0) == [1, 2, 5, 6])
      #expect(found.map(\.1) == ["a", "bb", "ccc\rd", "e"].map { utf8($0) })
    }
  }

  @Test("a stream without lines gives no chunk")
  func empty() throws {
    #expect(try split([]).isEmpty)
    #expect(try split(utf8("\n\r\n\n")).isEmpty)
    #expect(try split(utf8("\r")).isEmpty)
  }

  @Test("a chunk has the lines asked for, empty ones not counted")
  func chunkSizes() throws {
    var text = ""
    for i in 0..<2_500 { text += "line \(i)\n" + (i % 10 == 0 ? "\n" : "") }
    let chunks = try split(utf8(text), pieces: 777)
    #expect(chunks.map(\.lineCount) == [1_000, 1_000, 500])
    #expect(chunks.map(\.firstNumber) == [1, 1_101, 2_201])
    #expect(lines(chunks).map(\.1) == (0..<2_500).map { utf8("line \($0)") })
  }

  @Test("a chunk is full, too, with the line that makes it long enough")
  func longChunks() throws {
    let splitter = LineSplitter(linesPerChunk: 100, bytesPerChunk: 10)
    let chunks = try split(utf8("12345\n1234\n1\n2\n12345678901234\n1\n"), using: splitter)
    #expect(chunks.map(\.lineCount) == [2, 3, 1])
  }

  @Test("random texts in random pieces give the same lines as a plain split")
  func random() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var chance = SeededGenerator(seed: seed)
    for _ in 0..<300 {
      let bytes = (0..<chance.int(below: 400)).map { _ in
        chance.chance(0.1) ? UInt8(ascii: "\n") : UInt8(truncatingIfNeeded: chance.next())
      }
      let expected = bytes.split(separator: 10, omittingEmptySubsequences: false)
        .map { $0.last == 13 ? Array($0.dropLast()) : Array($0) }
      let splitter = LineSplitter(
        linesPerChunk: 1 + chance.int(below: 5), bytesPerChunk: 1 + chance.int(below: 100))
      let found = lines(
        try split(bytes, pieces: 1 + chance.int(below: 50), using: splitter))
      #expect(
        found.map(\.1) == expected.filter { !$0.isEmpty }, "seed \(seed)")
      #expect(
        found.map(\.0) == expected.indices.filter { !expected[$0].isEmpty }.map { $0 + 1 },
        "seed \(seed)")
    }
  }

  @Test("a line that is too long is an error in its place, and the lines behind it follow")
  func longLines() throws {
    let long = String(repeating: "x", count: 11)
    let text = utf8("a\n\(long)\nb\n\(String(repeating: "y", count: 1_000))\n\n1234567890\n\(long)")
    for pieces in [1, 2, 5, 12, 13, 14, 100, 10_000] {
      var splitter = LineSplitter(maximumLineBytes: 10)
      var found: [String] = []
      func drain() {
        while true {
          do throws(LineError) {
            guard let chunk = try splitter.next() else { return }
            found += lines([chunk]).map { "\($0.0) \(String(decoding: $0.1, as: UTF8.self))" }
          } catch {
            #expect(error.kind == .outOfBounds)
            found.append("\(error.line) too long")
          }
        }
      }
      var offset = 0
      while offset < text.count {
        let count = min(pieces, text.count - offset)
        splitter.append(text.rawSpan.extracting(offset..<offset + count))
        offset += count
        drain()
      }
      splitter.finish()
      drain()
      #expect(
        found == ["1 a", "2 too long", "3 b", "4 too long", "6 1234567890", "7 too long"],
        "pieces of \(pieces)")
    }
  }

  @Test("a carriage return does not make a line of the greatest length too long")
  func longestLine() throws {
    for end in ["\n", "\r\n", ""] {
      for pieces in [1, 3, 100] {
        let splitter = LineSplitter(maximumLineBytes: 10)
        let found = lines(
          try split(utf8("1234567890\(end)"), pieces: pieces, using: splitter))
        #expect(found.map(\.1) == [utf8("1234567890")], "\(end.utf8.count), \(pieces)")
      }
    }
  }

  @Test("bad lines can be collected, and the others are taken")
  func skipping() throws {
    let text = utf8("{\"key\":\"a\",\"value\":\"\"}\n\nbad\n{\"key\":\"b\",\"value\":\"\"}\n{}\n")
    let chunk = try #require(try split(text).first)
    var lines = DecodedLines()
    let bad = lines.appendSkippingBad(chunk)
    #expect(bad.map(\.line) == [3, 5])
    #expect(lines.lines.map(\.number) == [1, 4])

    lines.removeAll()
    do throws(LineError) {
      try lines.append(chunk)
      Issue.record("taken")
    } catch {
      #expect(error.line == 3)
    }
  }
}
