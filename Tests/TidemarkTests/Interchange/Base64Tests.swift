import Foundation
import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkNDJSON
import TidemarkTestKit

@Suite("Base64")
struct Base64Tests {
  private func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    Base64.encode(bytes.rawSpan, into: &text)
    return String(decoding: text, as: UTF8.self)
  }

  private func decode(_ text: String) -> [UInt8]? { Base64.decode(utf8(text).rawSpan) }

  @Test("the standard's examples come out")
  func examples() {
    let pairs = [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
      ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ]
    for (plain, text) in pairs {
      #expect(encode(utf8(plain)) == text)
      #expect(decode(text) == utf8(plain))
      #expect(Base64.encodedCount(plain.utf8.count) == text.utf8.count)
    }
  }

  @Test("bytes of every length come back, and Foundation writes the same")
  func roundTrip() {
    let seed = UInt64.random(in: 0 ... .max)
    var chance = SeededGenerator(seed: seed)
    for count in 0..<300 {
      let bytes = chance.bytes(count)
      let text = encode(bytes)
      #expect(text == Data(bytes).base64EncodedString(), "seed \(seed), \(count) bytes")
      #expect(decode(text) == bytes, "seed \(seed), \(count) bytes")
    }
  }

  @Test(
    "every other spelling is refused",
    arguments: [
      "Z", "Zg", "Zg=", "Zm8", "Zg===", "====", "=", "Zg==Zg==", "Z===", "Zh==", "Zm9=", "Zm 9",
      "Zm9v\n", "Zm9-", "Zm9_", "=m9v", "Z=9v", "Zm=v", "Zm9é", "Zm9v====", "Zg=g",
    ])
  func refused(_ text: String) { #expect(decode(text) == nil) }
}
