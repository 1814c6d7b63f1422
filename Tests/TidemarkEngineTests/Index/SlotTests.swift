import Testing

@testable import TidemarkEngine

struct SlotTests {
  @Test("size classes grow with the size and stay within a sixth of it")
  func classes() {
    var last = SizeClass.deleted
    for bytes in Array(32...5000) + (13...26).map({ 1 << $0 }) {
      let size = SizeClass(bytes: bytes)
      #expect(!size.isDeleted && !size.isCached)
      #expect(size.rawValue >= last.rawValue)
      let error = abs(size.approximateBytes - bytes)
      #expect(error * 6 <= bytes, "\(bytes) is taken for \(size.approximateBytes)")
      let cached = size.cached(over: nil)
      #expect(cached.isCached && !cached.isDeleted)
      let cachedError = abs(cached.approximateBytes - bytes)
      #expect(cachedError * 2 <= bytes, "\(bytes) is taken for \(cached.approximateBytes)")
      last = size
    }
  }

  @Test("a cached value that is given up leaves a key to be forgotten, unless older ones are owned")
  func evictions() {
    let owned = SizeClass(bytes: 250)
    let first = owned.cached(over: nil)
    #expect(first.afterEviction == .evicted && SizeClass.evicted.isDeleted)
    #expect(SizeClass.evicted.isCached && SizeClass.evicted.approximateBytes == 0)
    #expect(owned.cached(over: first).afterEviction == .evicted)
    #expect(owned.cached(over: .evicted).afterEviction == .evicted)
    for former in [owned, .deleted, owned.cached(over: owned)] {
      #expect(owned.cached(over: former).isCached)
      #expect(owned.cached(over: former).afterEviction == .deleted)
    }
    var touched = first
    touched.isTouched = true
    #expect(touched.isCached && touched.afterEviction == .evicted)
  }

  @Test("sizes beyond the last class share it")
  func saturation() {
    #expect(SizeClass(bytes: .max).rawValue == 63)
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
