import Testing

@testable import TidemarkEngine

struct SlotTests {
  @Test("size classes grow with the size and stay within an eighth of it")
  func classes() {
    var last = SizeClass.deleted
    for bytes in Array(1...5000) + (13...30).map({ 1 << $0 }) {
      let size = SizeClass(bytes: bytes)
      #expect(!size.isDeleted)
      #expect(size.rawValue >= last.rawValue)
      let error = abs(size.approximateBytes - bytes)
      #expect(error * 8 <= bytes, "\(bytes) is taken for \(size.approximateBytes)")
      last = size
    }
  }

  @Test("sizes beyond the last class share it")
  func saturation() {
    #expect(SizeClass(bytes: .max).rawValue == 126)
    #expect(SizeClass(bytes: 0) == SizeClass(bytes: 1))
  }

  @Test("a touch keeps the size and is not a delete")
  func touched() {
    var size = SizeClass(bytes: 250)
    let bytes = size.approximateBytes
    size.isTouched = true
    #expect(size.isTouched && !size.isDeleted && size.approximateBytes == bytes)
    size.isTouched = false
    #expect(size == SizeClass(bytes: 250))
    #expect(SizeClass.deleted.isDeleted && SizeClass.deleted.approximateBytes == 0)
  }

  @Test("the range of a prefix ends behind its last key, also behind bytes of 255")
  func prefixes() {
    #expect(KeyBound.afterPrefix([1, 2]) == .excluding([1, 3]))
    #expect(KeyBound.afterPrefix([1, 255, 255]) == .excluding([2]))
    #expect(KeyBound.afterPrefix([255, 255]) == .end)
    #expect(KeyBound.afterPrefix([]) == .end)
  }
}
