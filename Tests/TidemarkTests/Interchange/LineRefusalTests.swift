import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkNDJSON
import TidemarkTestKit

@Suite("Lines that are refused")
struct LineRefusalTests {
  @Test(
    "a line that is not JSON is a syntax error",
    arguments: [
      "", " ", "null", "[]", "\"key\"", "{", "{}}", #"{"key":"k","value":"v"} {}"#,
      #"{"key":"k","value":"v",}"#, #"{"key":"k" "value":"v"}"#, #"{"key":"k","value":"v"]"#,
      #"{"key":"k","value":"\ud800"}"#, #"{"key":"k","value":"\x"}"#, #"{'key':'k'}"#,
      #"{"key":"k","value":"v","x":tru}"#, #"{"key":"k","value":"v","max_age":01}"#,
      #"{"key":"k","value":"v","seq":}"#, "{\"key\":\"a\tb\",\"value\":\"v\"}",
      #"{"key":"k","value":"v","labels":["a",]}"#, #"{"key":"k","value":"v","labels":["a"}"#,
    ])
  func syntax(_ line: String) { #expect(refusal(line)?.kind == .syntax) }

  @Test(
    "JSON that is no line of the format is an error of content",
    arguments: [
      ("{}", "no key"),
      (#"{"key":"k"}"#, "value"),
      (#"{"op":"put","key":"k"}"#, "value"),
      (#"{"value":"v"}"#, "no key"),
      (#"{"op":"delete","key":"k","value":"v"}"#, "only a put"),
      (#"{"op":"touch","key":"k","value_base64":""}"#, "only a put"),
      (#"{"op":"delete","key":"k","labels":["a"]}"#, "only a put has labels"),
      (#"{"labels":["a"],"op":"touch","key":"k"}"#, "only a put has labels"),
      (#"{"op":"touch","key":"k","labels_base64":["YQ=="]}"#, "only a put has labels"),
      (#"{"key":"k","value":"v","labels_base64":["a"]}"#, "a label of labels_base64 is not"),
      (#"{"key":"k","value":"v","labels_base64":[1]}"#, "each label must be a string"),
      (#"{"key":"k","value":"v","labels_base64":"a"}"#, "labels_base64 must be an array"),
      (#"{"key":"k","key":"k","value":"v"}"#, "key stands twice"),
      (#"{"key":"k","value":"v","labels":[],"labels":[]}"#, "labels stands twice"),
      (#"{"key":"k","value":"v","seq":1,"seq":1}"#, "seq stands twice"),
      (#"{"key":"k","key_base64":"aw==","value":"v"}"#, "key and key_base64"),
      (#"{"key":"k","value":"v","value_base64":"dg=="}"#, "value and value_base64"),
      (#"{"key":"k","value":"v","hash":"","hash_base64":""}"#, "hash and hash_base64"),
      (#"{"key":1,"value":"v"}"#, "key must be a string"),
      (#"{"key":"k","value":null}"#, "value must be a string"),
      (#"{"key":"k","value":"v","hash":{}}"#, "hash must be a string"),
      (#"{"key":"k","value":"v","labels":"a"}"#, "labels must be an array"),
      (#"{"key":"k","value":"v","labels":[1]}"#, "each label must be a string"),
      (#"{"key":"k","value":"v","time":1788220800}"#, "time must be a string"),
      (#"{"key":"k","value":"v","time":"yesterday"}"#, "RFC 3339"),
      (#"{"key":"k","value":"v","max_age":"300"}"#, "max_age must be a whole number"),
      (#"{"key":"k","value":"v","max_age":300.0}"#, "max_age must be a whole number"),
      (#"{"key":"k","value":"v","max_age":3e2}"#, "max_age must be a whole number"),
      (#"{"key":"k","value":"v","class":"Cache"}"#, "owned or cache"),
      (#"{"op":"PUT","key":"k","value":"v"}"#, "put, delete or touch"),
      (#"{"op":"","key":"k","value":"v"}"#, "put, delete or touch"),
      (#"{"key_base64":"a","value":"v"}"#, "key_base64 is not base64"),
      (#"{"key":"k","value_base64":"dg"}"#, "value_base64 is not base64"),
      (#"{"key":"k","value_base64":"dé=="}"#, "value_base64 is not base64"),
    ])
  func content(_ line: String, _ words: String) throws {
    let error = try #require(refusal(line))
    #expect(error.kind == .content)
    #expect(error.reason.contains(words), "\(error)")
  }

  private func line(
    key: String = "k", value: String = "v", labels: [String] = [], more: String = ""
  ) -> String {
    let names = labels.map { "\"\($0)\"" }.joined(separator: ",")
    return "{\"key\":\"\(key)\",\"value\":\"\(value)\",\"labels\":[\(names)]\(more)}"
  }

  @Test("keys have 1 to 65,535 bytes")
  func keyBounds() {
    #expect(refusal(line(key: String(repeating: "k", count: 65_535))) == nil)
    #expect(refusal(line(key: String(repeating: "k", count: 65_536)))?.kind == .outOfBounds)
    #expect(refusal(line(key: String(repeating: "é", count: 32_768)))?.kind == .outOfBounds)
    #expect(refusal(line(key: ""))?.kind == .outOfBounds)
    #expect(refusal(#"{"key_base64":"","value":"v"}"#)?.kind == .outOfBounds)
    // Escapes count as the bytes that they stand for.
    #expect(refusal(line(key: String(repeating: "\\u0041", count: 65_535))) == nil)
  }

  @Test("values have up to 64 MiB, whatever they are written as")
  func valueBounds() {
    var text = utf8(#"{"key":"k","value":""#)
    text += [UInt8](repeating: UInt8(ascii: "v"), count: Limits.valueBytes)
    #expect(refusal(bytes: text + utf8("\"}")) == nil)
    #expect(refusal(bytes: text + utf8("v\"}"))?.kind == .outOfBounds)
  }

  @Test("an entry has up to 64 labels of 1 to 255 bytes")
  func labelBounds() {
    let many = (0..<64).map { "label \($0)" }
    #expect(refusal(line(labels: many)) == nil)
    #expect(refusal(line(labels: many + many)) == nil)
    #expect(refusal(line(labels: many + ["one more"]))?.kind == .outOfBounds)
    #expect(refusal(line(labels: [String(repeating: "l", count: 255)])) == nil)
    #expect(
      refusal(line(labels: [String(repeating: "l", count: 256)]))?.kind == .outOfBounds)
    #expect(refusal(line(labels: ["a", ""]))?.kind == .outOfBounds)
  }

  @Test("hashes have up to 64 bytes")
  func hashBounds() {
    let hash = String(repeating: "h", count: 64)
    #expect(refusal(line(more: ",\"hash\":\"\(hash)\"")) == nil)
    #expect(refusal(line(more: ",\"hash\":\"\(hash)h\""))?.kind == .outOfBounds)
    #expect(refusal(line(more: ",\"hash\":\"\"")) == nil)
  }

  @Test(
    "max_age has 0 to 4,294,967,295 seconds",
    arguments: ["4294967296", "-1", "-0", "18446744073709551616", "99999999999999999999999999"])
  func maxAgeBounds(_ number: String) {
    #expect(refusal(line(more: ",\"max_age\":\(number)"))?.kind == .outOfBounds)
  }

  @Test("an error says the line, the column in characters, and what to do, but no data")
  func words() throws {
    var lines = DecodedLines()
    do throws(LineError) {
      try lines.append(#"{"key":"geheim é","value":"v","op":"push"}"#, number: 42)
      Issue.record("taken")
    } catch {
      #expect(error.line == 42)
      #expect(error.column == 36)
      #expect(error.description == "line 42, column 36: op must be put, delete or touch")
    }
    let cut = try #require(refusal(#"{"key":"geheim","value":"v"#))
    #expect(cut.reason.contains("cut off"))
    #expect(cut.column == 25)
    #expect(!cut.description.contains("geheim"))
  }

  @Test("nesting in unknown fields is bounded")
  func nesting() {
    func nested(_ depth: Int) -> String {
      line(
        more: ",\"x\":" + String(repeating: "[", count: depth)
          + String(repeating: "]", count: depth))
    }
    #expect(refusal(nested(63)) == nil)
    #expect(refusal(nested(64))?.kind == .syntax)
    #expect(refusal(nested(1_000_000))?.kind == .syntax)
  }

  /// A line with all that a line can have.
  private let rich = utf8(
    #"{"op":"put","key":"k\n\u00e9","value":"x\"\ud83d\ude00 é","hash":"abc","labels":["a","b"],"#
      + #""time":"2026-09-01T08:30:00.25+02:00","max_age":300,"class":"cache","seq":1,"#
      + #""op_id":"a.1","labels_base64":["/w==","YQ=="],"other":[{"a":-1.5e3},true,null]}"#)

  @Test("every truncation of a good line is refused and leaves nothing")
  func truncations() throws {
    #expect(refusal(bytes: rich) == nil)
    var lines = DecodedLines()
    for count in 0..<rich.count {
      #expect(throws: LineError.self, "\(count) bytes") {
        try lines.append(bytes: Array(self.rich[..<count]))
      }
    }
    #expect(lines.count == 0)
    #expect(lines.byteCount == 0)
    #expect(lines.unknownFields.isEmpty)
  }

  @Test("no damaged line traps, and what is taken keeps the bounds")
  func damage() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var chance = SeededGenerator(seed: seed)
    var lines = DecodedLines()
    var taken = 0
    for _ in 0..<20_000 {
      var bytes = rich
      for _ in 0...chance.int(below: 4) {
        let position = chance.int(below: bytes.count)
        switch chance.int(below: 4) {
        case 0: bytes[position] = UInt8(truncatingIfNeeded: chance.next())
        case 1: bytes.remove(at: position)
        case 2: bytes.insert(bytes[chance.int(below: bytes.count)], at: position)
        default: bytes.removeSubrange(position..<min(bytes.count, position + 10))
        }
      }
      guard let text = try? decode(bytes: bytes) else { continue }
      taken += 1
      #expect(!text.key.isEmpty, "seed \(seed)")
      #expect(text.labels.allSatisfy { !$0.isEmpty }, "seed \(seed)")
      try lines.append(bytes: bytes)
    }
    #expect(lines.count == taken)
    #expect(taken > 50, "seed \(seed): the damage is too strong")
  }
}
