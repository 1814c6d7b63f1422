import Foundation
import Testing
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol

/// The examples of `WireProtocol.md` are the golden bytes: neither can change without the other.
@Suite("The examples of the documentation")
struct WireGoldenTests {
  private struct Example {
    var json = ""
    var hex = ""
  }

  private static func document() throws -> String {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(
      path: "../../../Sources/TidemarkSync/TidemarkSync.docc/WireProtocol.md"
    ).standardizedFileURL
    return try String(contentsOf: file, encoding: .utf8)
  }

  private static func examples() throws -> [String: Example] {
    var examples: [String: Example] = [:]
    var name: String?
    var fence: String?
    for line in try document().split(separator: "\n") {
      if line.hasPrefix("```") {
        fence = fence == nil ? String(line.dropFirst(3)) : nil
      } else if line.hasPrefix("#") {
        name = line.hasPrefix("#### ") ? String(line.dropFirst(5)) : nil
      } else if let name, let fence {
        let text = line.drop { $0 == " " }
        if fence == "json" {
          examples[name, default: Example()].json += text
        } else {
          examples[name, default: Example()].hex += text
        }
      }
    }
    return examples
  }

  @Test("every message has its example, which is what is written and can be read")
  func documented() throws {
    let examples = try Self.examples()
    let coder = WireCoder(codec: .none)
    for (name, message) in WireSamples.messages where name != "digest_answer-sums" {
      let example = try #require(examples[name], "\(name)")
      let frame = try coder.encode(message)
      #expect(Hex.text(frame) == example.hex, "\(name)")
      let text = try coder.encodeJSON(message)
      #expect(String(decoding: text, as: UTF8.self) == example.json, "\(name)")
      #expect(try coder.decode(frame) == message, "\(name)")
      #expect(try coder.decodeJSON(Array(example.json.utf8)) == message, "\(name)")
    }
    #expect(examples.count == WireSamples.messages.count - 1)
    #expect(Set(WireSamples.messages.map(\.message.kind)) == Set(WireMessage.Kind.allCases))
  }

  @Test("the example of a fingerprint is right")
  func fingerprint() throws {
    let key = Array("note/1".utf8)
    let print = ContentFingerprint(
      key: key.rawSpan, value: Array("Buy milk".utf8).rawSpan, labels: [Array("inbox".utf8)])
    func digits(_ word: some WireValue) -> String {
      var text: [UInt8] = []
      word.appendText(to: &text)
      return String(decoding: text, as: UTF8.self)
    }
    let document = try Self.document()
    for (name, text) in [
      ("hash of the key", digits(ContentFingerprint.keyHash(key.rawSpan))),
      ("low half", digits(UInt64(truncatingIfNeeded: print.bits))),
      ("high half", digits(UInt64(truncatingIfNeeded: print.bits >> 64))),
      ("`sum` in JSON", digits(print.bits)),
    ] {
      #expect(document.contains("| \(name) | `\(text)` |"), "\(name)")
    }
  }

  @Test("a digest of sums, too long for the documentation, stays as it is")
  func sums() throws {
    let coder = WireCoder(codec: .none)
    let sample = try #require(WireSamples.messages.first { $0.name == "digest_answer-sums" })
    let frame = try coder.encode(sample.message)
    let text = try coder.encodeJSON(sample.message)
    #expect(frame.count == 345 && CRC32C.checksum(frame.rawSpan) == 0x4616_1f07)
    #expect(text.count == 3131 && CRC32C.checksum(text.rawSpan) == 0x2d61_dc3e)
  }
}
