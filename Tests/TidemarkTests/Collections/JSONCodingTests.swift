import Foundation
import Testing
import TidemarkEngine
import TidemarkNDJSON
import TidemarkTestKit

import Tidemark
@testable import TidemarkCollections

@Suite("JSON of collections")
struct JSONCodingTests {
  struct Everything: Codable, Equatable {
    struct Inner: Codable, Equatable {
      var name: String
      var more: [Inner]?
    }
    var text = "a\"\\\n\u{0}\u{1F30A}é"
    var flag = true
    var numbers: [Int] = [0, -1, .max, .min]
    var small: Int8 = -128
    var large: UInt64 = .max
    var real = 0.1
    var tiny = Double.leastNonzeroMagnitude
    var huge = -1.7976931348623157e308
    var single: Float = 0.3
    var whole = 3.0
    var date = Date(timeIntervalSinceReferenceDate: 812_345_678.123456)
    var data = Data([0, 1, 2, 250, 255])
    var address = URL(string: "https://example.org/a?b=c")
    var id = UUID(uuidString: "0F0E0D0C-0B0A-0908-0706-050403020100")
    var price = Decimal(string: "12.34")
    var missing: String?
    var table = ["b": 1, "a": 2, "": 3]
    var byNumber = [3: "x", 1: "y"]
    var inner = Inner(name: "i", more: [Inner(name: "j", more: [])])
    var dates: [Date?] = [Date(timeIntervalSince1970: 0), nil]
  }

  private func decoded<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
    try JSONDecoding(JSONTape(Array(text.utf8))).decode(type)
  }

  private func encoded(_ value: some Encodable) throws -> String {
    String(decoding: try JSONEncoding.encode(value), as: UTF8.self)
  }

  @Test("a value of every type comes back as it was")
  func roundTrip() throws {
    let value = Everything()
    let bytes = try JSONEncoding.encode(value)
    #expect(try JSONDecoding(JSONTape(bytes)).decode(Everything.self) == value)
  }

  @Test("names are in the order of their bytes, and other readers read the same")
  func sorted() throws {
    let text = try encoded(Everything())
    let object = try #require(
      try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    #expect(object["text"] as? String == Everything().text)
    #expect(object["whole"] as? Double == 3)
    #expect(text.contains(#""whole":3}"#))
    #expect(text.contains(#""address":"https://example.org/a?b=c""#))
    #expect(text.contains(#""data":"AAEC+v8=""#))
    #expect(text.contains(#""date":"2026-09-29T03:34:38.123456Z"#))
    let keys = ["address", "byNumber", "data", "date", "dates", "flag", "huge", "id", "inner"]
    let places = keys.compactMap { text.range(of: "\"\($0)\":")?.lowerBound }
    #expect(places == places.sorted())
    #expect(places.count == keys.count)
  }

  @Test(
    "an error says where",
    arguments: [
      (#"{"name":1}"#, "name"), (#"{"name":"a","more":[{"name":"b"},{"nome":"c"}]}"#, "more.1"),
      (#"{"name":"a","more":[{"name":null}]}"#, "more.0.name"),
      (#"{"name":"a","more":{}}"#, "more"),
    ])
  func errors(text: String, path: String) throws {
    let error = #expect(throws: DecodingError.self) { try decoded(Everything.Inner.self, text) }
    let found: [any CodingKey]? =
      switch error {
      case .typeMismatch(_, let context), .valueNotFound(_, let context),
        .keyNotFound(_, let context), .dataCorrupted(let context):
        context.codingPath
      default: nil
      }
    #expect(found?.map(\.stringValue).joined(separator: ".") == path)
  }

  @Test(
    "text that is no JSON is refused",
    arguments: [
      "", "{", "[", "{}{}", "{\"a\"}", "{\"a\":}", "[1,]", "{\"a\":1,}", "[,1]", "nul", "01", "1.",
      "\"a", "{a:1}", "[1 2]", "\u{FEFF}{}", "{\"a\":1 \"b\":2}", "]", "}",
    ])
  func refused(text: String) {
    #expect(throws: (any Error).self) { try JSONTape(Array(text.utf8)) }
  }

  @Test(
    "a Decimal is a number, exactly, and is read from one in any form",
    arguments: [
      ("12.5", "12.5"), ("0", "0"), ("-0.001", "-0.001"), ("1e3", "1000"), ("12.500", "12.5"),
      ("-7E-2", "-0.07"), ("99999999999999999999999999999999999999", nil), ("0.1", "0.1"),
      ("1e-100", nil), ("340282366920938463463374607431768211455", nil), ("-0", "0"), ("1.0", "1"),
    ])
  func decimals(number: String, written: String?) throws {
    let value = try decoded(Decimal.self, number)
    #expect(value == Decimal(string: number))
    let text = try encoded([value])
    if let written { #expect(text == "[\(written)]") }
    #expect(try decoded([Decimal].self, text) == [value])
    // A Decimal as it writes itself is read as well, and so it was stored before.
    let fields = """
      {"exponent":\(value.exponent),"isCompact":true,"isNegative":\(value.isSignMinus),"length":1,\
      "mantissa":[7,0,0,0,0,0,0,0]}
      """
    #expect(
      try decoded(Decimal.self, fields)
        == Decimal(sign: value.sign, exponent: value.exponent, significand: 7))
  }

  @Test("a Decimal refuses NaN and numbers that it would have to round")
  func unfitDecimals() throws {
    for text in ["1e200", "1e-200", "340282366920938463463374607431768211456", "true"] {
      #expect(throws: DecodingError.self, "\(text)") { try decoded(Decimal.self, text) }
    }
    let large = try decoded(Decimal.self, "1e150")
    #expect(large.exponent == 127)
    #expect(large.significand == Decimal(sign: .plus, exponent: 23, significand: 1))
    #expect(throws: EncodingError.self) { try encoded([Decimal.nan]) }
    let seed = UInt64.random(in: 0 ... .max)
    var random = SeededGenerator(seed: seed)
    for _ in 0..<500 {
      let significand = Decimal(Int64(truncatingIfNeeded: random.next()))
      let value = Decimal(
        sign: .plus, exponent: Int.random(in: -60...60, using: &random), significand: significand)
      let text = try encoded(value)
      #expect(try decoded(Decimal.self, text) == value, "seed \(seed), \(text)")
      #expect(Decimal(string: text) == value, "seed \(seed), \(text)")
    }
  }

  @Test("nesting of 64 levels is written and read, and one more is refused")
  func deepest() throws {
    struct Tree: Codable, Equatable {
      var next: [Tree?] = []
      var text = UUID(uuidString: "0F0E0D0C-0B0A-0908-0706-050403020100")
    }
    // By hand, where a container cannot throw.
    struct Rings: Encodable {
      var levels: Int
      func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for _ in 1..<levels { container = container.nestedUnkeyedContainer() }
        try container.encode(1)
      }
    }
    var tree = Tree()
    // Two levels each.
    for _ in 0..<31 { tree = Tree(next: [tree, nil]) }
    #expect(try decoded(Tree.self, encoded(tree)) == tree)
    #expect(throws: EncodingError.self) { try encoded(Tree(next: [Tree(next: [tree])])) }
    _ = try JSONTape(Array(encoded(Rings(levels: 64)).utf8))
    #expect(throws: EncodingError.self) { try encoded(Rings(levels: 65)) }
  }

  @Test("deep nesting is refused, read and written")
  func deep() throws {
    struct Nested: Codable {
      var next: [Nested]
    }
    let text = String(repeating: "[", count: 65) + String(repeating: "]", count: 65)
    #expect(throws: (any Error).self) { try JSONTape(Array(text.utf8)) }
    var value = Nested(next: [])
    for _ in 0..<100 { value = Nested(next: [value]) }
    #expect(throws: EncodingError.self) { try JSONEncoding.encode(value) }
  }

  @Test("numbers that do not fit are refused, and not rounded")
  func numbers() throws {
    #expect(try decoded([Int].self, "[1e2,-0,10.0]") == [100, 0, 10])
    #expect(throws: DecodingError.self) { try decoded([Int8].self, "[128]") }
    #expect(throws: DecodingError.self) { try decoded([Int].self, "[1.5]") }
    #expect(throws: DecodingError.self) { try decoded([UInt].self, "[-1]") }
    #expect(throws: DecodingError.self) { try decoded([Double].self, "[1e400]") }
    #expect(throws: DecodingError.self) { try decoded([Float].self, "[1e300]") }
    #expect(throws: EncodingError.self) { try encoded([Double.infinity]) }
    #expect(
      try decoded([Double].self, "[0.1,1e22,-0.0,123456789012345680]")
        == [0.1, 1e22, -0.0, 123_456_789_012_345_680])
  }

  @Test("random numbers come back bit by bit")
  func randomNumbers() throws {
    let seed = UInt64.random(in: 0 ... .max)
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    for _ in 0..<2_000 {
      let value = Double(bitPattern: random.next())
      guard value.isFinite else { continue }
      let text = try encoded([value, Double(random.next() % 100_000) / 1000])
      #expect(try decoded([Double].self, text)[0].bitPattern == value.bitPattern, "\(value)")
      #expect(try encoded(decoded([Double].self, text)) == text)
    }
  }

  @Test("a nested container and a super encoder may be written in any order")
  func nested() throws {
    struct Odd: Codable, Equatable {
      var a = 1
      var b = [1, 2]
      enum Names: String, CodingKey { case z, y, x }
      init() {}
      init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Names.self)
        a = try fields.nestedContainer(keyedBy: Names.self, forKey: .z).decode(Int.self, forKey: .y)
        var list = try fields.nestedUnkeyedContainer(forKey: .y)
        b = [try list.decode(Int.self), try list.decode(Int.self)]
        _ = try fields.superDecoder(forKey: .x).singleValueContainer().decode(String.self)
      }
      func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: Names.self)
        var inner = fields.nestedContainer(keyedBy: Names.self, forKey: .z)
        var list = fields.nestedUnkeyedContainer(forKey: .y)
        try list.encode(b[0])
        try inner.encode(a, forKey: .y)
        try list.encode(b[1])
        var value = fields.superEncoder(forKey: .x).singleValueContainer()
        try value.encode("s")
      }
    }
    #expect(try encoded(Odd()) == #"{"x":"s","y":[1,2],"z":{"y":1}}"#)
    #expect(try decoded(Odd.self, encoded(Odd())) == Odd())
  }

  @Test("names are found in any order, with escapes, and before others that begin like them")
  func fieldOrder() throws {
    struct Fields: Codable, Equatable {
      var b: Int8
      var a: UInt16?
      var ab: [Int]
      var none: Bool?
      var quoted: [Double]?
      enum CodingKeys: String, CodingKey {
        case b, a, ab, none
        case quoted = "q\"é"
      }
    }
    let text = #" { "ab" : [ 1 , 2 ], "\u0061" : 7 ,"none":null, "q\"\u00e9":[0.5],"b":-3 } "#
    #expect(
      try decoded(Fields.self, text) == Fields(b: -3, a: 7, ab: [1, 2], none: nil, quoted: [0.5]))
    #expect(try decoded(Fields.self, encoded(decoded(Fields.self, text))).quoted == [0.5])
    for (text, words) in [
      (#"{"b":1,"ab":"x"}"#, "Array<Any> is expected"), (#"{"b":1,"ab":[1,null]}"#, "Int is expec"),
      (#"{"b":128,"ab":[]}"#, "does not fit Int8"), (#"{"ab":[]}"#, "there is no field b"),
    ] {
      let error = #expect(throws: DecodingError.self) { try decoded(Fields.self, text) }
      #expect("\(error as Any)".contains(words), "\(text)")
    }
  }
}
