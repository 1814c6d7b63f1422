import Foundation
import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkNDJSON
import TidemarkTestKit

@Suite("The JSON scanner")
struct JSONScannerTests {
  /// Whether a text is one valid value; nil means that it is.
  private func error(_ bytes: [UInt8]) -> JSONError? {
    do throws(JSONError) {
      var scanner = JSONScanner(bytes.rawSpan)
      try scanner.skipValue(depth: 0)
      try scanner.expectEnd()
      return nil
    } catch {
      return error
    }
  }

  private func error(_ text: String) -> JSONError? { error(Array(text.utf8)) }

  private func string(_ bytes: [UInt8]) throws(JSONError) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: bytes.count)
    let count = try buffer.withMutableRawSpan { (span) throws(JSONError) in
      var scanner = JSONScanner(bytes.rawSpan)
      let end = try scanner.string(into: &span, at: 0)
      try scanner.expectEnd()
      return end
    }
    return Array(buffer[..<count])
  }

  @Test(
    "text that RFC 8259 allows is taken",
    arguments: [
      "0", "-0", "1", "-1.5e+10", "1E400", "123456789012345678901234567890", "0.1e-2", "true",
      "false", "null", "\"\"", "\"a\"", " [ ] ", "{}", "[1,2]", "[[],{}]", "{\"\":0}",
      "{\"a\":{\"b\":[null]}}", "\t\r\n{ \"a\" : 1 , \"b\" : [ ] }\n", "\"\\u0000\"", "\"\\/\"",
      "\"\u{7f}\"", "\"\u{10ffff}\"", "{\"a\":1,\"a\":2}", "\"\\uD834\\udd1e\"",
    ])
  func valid(_ text: String) { #expect(error(text) == nil) }

  @Test(
    "text that RFC 8259 forbids is refused",
    arguments: [
      "", " ", "01", "-", "-a", "1.", ".5", "1e", "1e+", "+1", "1.5.5", "0x10", "NaN",
      "Infinity", "tru", "True", "nul", "truefalse", "true1", "\"", "\"a", "'a'", "[", "]", "[1",
      "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", "}", "{\"a\"", "{\"a\":", "{\"a\":1",
      "{\"a\":1,", "{\"a\":1,}", "{\"a\" 1}", "{1:1}", "{a:1}", "{\"a\":1]", "{,}", "1 2", "[]]",
      "{}{}", "\"\\a\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\\"", "\"\u{1}\"", "\"\n\"", "\"\t\"",
      "\"\\uD800\"", "\"\\uDC00\"", "\"\\uD800\\u0041\"", "\"\\uD800\\uD800\"", "\"\\uD800x\"",
      "\"\\uDC00\\uD800\"", "// c\n1", "/**/1", "\u{a0}1", "\u{0}", "1\u{0}", "[1]\u{c}",
    ])
  func invalid(_ text: String) { #expect(error(text) != nil) }

  @Test("an error says where", arguments: [("[1,x]", 3), ("{\"a\":01}", 5), ("\"ab\\x\"", 3)])
  func places(_ text: String, _ offset: Int) { #expect(error(text)?.offset == offset) }

  @Test("ill-formed UTF-8 is refused at every position of a string")
  func illFormed() {
    let sequences: [[UInt8]] = [
      [0x80], [0xbf], [0xc0, 0x80], [0xc1, 0xbf], [0xc2], [0xc2, 0x41], [0xe0, 0x80, 0x80],
      [0xe0, 0x9f, 0xbf], [0xe1, 0x80], [0xe1, 0x80, 0x41], [0xed, 0xa0, 0x80],
      [0xed, 0xbf, 0xbf], [0xf0, 0x80, 0x80, 0x80], [0xf0, 0x8f, 0xbf, 0xbf],
      [0xf1, 0x80, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xfe], [0xff],
    ]
    for sequence in sequences {
      for before in 0..<40 {
        for after in [0, 1, 3, 7, 20] {
          let plain = [UInt8](repeating: 0x61, count: before)
          let rest = [UInt8](repeating: 0x62, count: after)
          let text = [0x22] + plain + sequence + rest + [0x22]
          #expect(
            error(text) == JSONError(.notUTF8, at: before + 1), "\(sequence), \(before), \(after)")
          #expect(throws: JSONError.self) { try self.string(text) }
        }
      }
    }
  }

  @Test("every character comes through a string, plain and as an escape, at every position")
  func characters() throws {
    let scalars: [UInt32] =
      Array(0x20...0x2ff) + [0x7ff, 0x800, 0xfff, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff]
    for value in scalars {
      let scalar = try #require(Unicode.Scalar(value))
      let character = Array(String(Character(scalar)).utf8)
      let escape = Array(
        String(Character(scalar)).utf16.map { String(format: "\\u%04X", Int($0)) }.joined().utf8)
      for before in [0, 1, 7, 8, 15, 16, 17] {
        let plain = [UInt8](repeating: 0x61, count: before)
        #expect(try string([0x22] + plain + escape + plain + [0x22]) == plain + character + plain)
        guard scalar != "\"", scalar != "\\" else { continue }
        #expect(
          try string([0x22] + plain + character + plain + [0x22]) == plain + character + plain)
      }
    }
  }

  @Test("all short escapes are resolved, and control characters are refused")
  func escapes() throws {
    #expect(
      try string(utf8("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""))
        == [0x22, 0x5c, 0x2f, 0x08, 0x0c, 0x0a, 0x0d, 0x09])
    for control in UInt8(0)..<0x20 {
      for before in [0, 5, 20] {
        let plain = [UInt8](repeating: 0x61, count: before)
        let text = [0x22] + plain + [control] + plain + [0x22]
        #expect(error(text) == JSONError(.controlCharacter, at: before + 1))
        #expect(throws: JSONError.self) { try self.string(text) }
      }
    }
  }

  @Test("nesting is taken to the limit and not beyond, however deep the input is")
  func nesting() {
    let limit = JSONScanner.maximumDepth
    func nested(_ depth: Int) -> String {
      String(repeating: "[{\"a\":", count: depth / 2) + "0"
        + String(repeating: "}]", count: depth / 2)
    }
    #expect(error(nested(limit)) == nil)
    #expect(error(nested(limit + 2))?.reason == .tooDeep)
    #expect(error(String(repeating: "[", count: 1_000_000))?.reason == .tooDeep)
    #expect(error(String(repeating: "{\"a\":", count: 1_000_000))?.reason == .tooDeep)
  }

  @Test("huge numbers are passed over")
  func numbers() {
    #expect(error("[" + String(repeating: "9", count: 100_000) + "]") == nil)
    #expect(error("0." + String(repeating: "0", count: 100_000) + "1e-999999999999") == nil)
  }

  @Test("it agrees with Foundation on texts damaged at random")
  func agreesWithFoundation() throws {
    let seed = UInt64.random(in: 0 ... .max)
    var chance = SeededGenerator(seed: seed)
    let texts = [
      "{\"op\":\"put\",\"a\":[1,2.5,-3,true,null],\"b\":{\"c\":\"x\\n\\u00e9\\ud83d\\ude00\"}}",
      "[\"naïve — 日本\",{\"a\":{}},[],-0.5,\"\\\\\\\"\"]",
    ]
    var taken = 0
    for run in 0..<20_000 {
      var bytes = Array(texts[chance.int(below: texts.count)].utf8)
      for _ in 0...chance.int(below: 2) {
        let position = chance.int(below: bytes.count)
        switch chance.int(below: 3) {
        case 0: bytes[position] = chance.pick(Array("{}[]\",:\\0123456789-.utf \n\u{1}é".utf8))!
        case 1: bytes.remove(at: position)
        default: bytes.insert(bytes[chance.int(below: bytes.count)], at: position)
        }
      }
      // Foundation overlooks a comma before a closing bracket.
      let text = String(decoding: bytes, as: UTF8.self)
      if text.contains(/,\s*[\]}]/) { continue }
      let ours = error(bytes) == nil
      let theirs =
        (try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)) != nil
      #expect(ours == theirs, "seed \(seed), run \(run): \(text)")
      taken += ours ? 1 : 0
    }
    #expect(taken > 500 && taken < 19_500, "seed \(seed): the damage is too weak or too strong")
  }
}
