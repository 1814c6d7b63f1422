import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("SHA-256")
struct SHA256Tests {
  private func text(_ hash: [UInt8]) -> String { AttachmentID.text(hash) }

  @Test("the examples of FIPS 180-2, appendix B, come out, and so does the hash of nothing")
  func vectors() {
    func hash(_ text: String) -> String { self.text(SHA256.hash(Array(text.utf8).rawSpan)) }
    #expect(hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(
      hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
        == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
    #expect(
      hash(String(repeating: "a", count: 1_000_000))
        == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
  }

  @Test("the processor's instructions and the portable code give the same")
  func portable() {
    var chance = SeededGenerator(seed: 12)
    for length in 0..<300 {
      let bytes = chance.bytes(length)
      var hash = SHA256(isPortable: true)
      hash.add(bytes.rawSpan)
      #expect(hash.digest == SHA256.hash(bytes.rawSpan), "\(length) bytes")
    }
  }

  @Test("bytes that come in pieces of any length have the hash that they have as one")
  func pieces() {
    var chance = SeededGenerator(seed: 11)
    for length in [0, 1, 55, 56, 57, 63, 64, 65, 127, 128, 129, 1_000] {
      let bytes = chance.bytes(length)
      let whole = SHA256.hash(bytes.rawSpan)
      var hash = SHA256(isPortable: length % 2 == 0)
      var start = 0
      while start < length {
        let count = min(1 + chance.int(below: 70), length - start)
        hash.add(bytes.rawSpan.extracting(start..<(start + count)))
        start += count
      }
      #expect(hash.digest == whole, "\(length) bytes")
    }
  }
}
