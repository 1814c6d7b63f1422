internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

// SAFETY: every index is checked against the length, and every access is an atomic one, so that
// threads may race for a word: they see an old or a new one. What is marked unsafe leaves that
// to its caller: `unmap` comes last of all, and whoever takes `plainBytes` has them alone.

/// Words of memory that threads read and write at the same time, in pages that come when they
/// are first touched. Only single words are atomic: a reader of more checks a version of its own.
///
/// A handle that counts no references, since threads that only read would wait for the count:
/// the memory is there until its owner calls ``unmap()``.
@safe
struct AtomicWords: @unchecked Sendable {
  static let wordBytes = 8

  let count: Int
  private let base: UnsafeMutablePointer<Atomic<UInt64>>

  /// Reserves words; all are zero.
  /// - Returns: nil when the system has no address space left.
  init?(count: Int) {
    precondition(count > 0)
    guard let memory = unsafe try? reserveMemory(count * Self.wordBytes) else { return nil }
    self.count = count
    unsafe base = memory.bindMemory(to: Atomic<UInt64>.self, capacity: count)
  }

  /// Gives the words back; called once, by the owner, when nobody reads any more.
  @unsafe
  func unmap() { unsafe releaseMemory(UnsafeMutableRawPointer(base), count * Self.wordBytes) }

  /// Lets pages of a range that were not touched yet be of megabytes, where the system has such:
  /// saves most of what a look-up in large memory waits for address translation. The first touch
  /// of such a page takes as long as hundreds of look-ups.
  func useHugePages(_ index: Int, _ words: Int) {
    #if !canImport(Darwin)
      let pages = pages(index, words, wholePages: false)
      guard !pages.isEmpty else { return }
      let start = unsafe UnsafeMutableRawPointer(base) + pages.lowerBound
      _ = unsafe madvise(start, pages.count, Int32(MADV_HUGEPAGE))
    #endif
  }

  /// How many words hold so many bytes.
  @inline(__always)
  static func words(forBytes bytes: Int) -> Int { (bytes &+ 7) &>> 3 }

  @inline(__always)
  func load(_ index: Int) -> UInt64 { unsafe base[checked(index)].load(ordering: .relaxed) }

  /// Asks the processor for the memory around a word, if there is one.
  @inline(__always)
  func prefetch(_ index: Int) {
    if index >= 0, index < count { unsafe TidemarkEngine.prefetch(UnsafeRawPointer(base + index)) }
  }

  @inline(__always)
  func loadAcquiring(_ index: Int) -> UInt64 {
    unsafe base[checked(index)].load(ordering: .acquiring)
  }

  @inline(__always)
  func store(_ index: Int, _ value: UInt64) {
    unsafe base[checked(index)].store(value, ordering: .relaxed)
  }

  @inline(__always)
  func storeReleasing(_ index: Int, _ value: UInt64) {
    unsafe base[checked(index)].store(value, ordering: .releasing)
  }

  /// Orders the loads before it before the loads after it.
  @inline(__always)
  static func fenceLoads() { atomicMemoryFence(ordering: .acquiring) }

  /// Orders the stores before it before the stores after it.
  @inline(__always)
  static func fenceStores() { atomicMemoryFence(ordering: .releasing) }

  /// Orders everything before it before everything after it.
  @inline(__always)
  static func fence() { atomicMemoryFence(ordering: .sequentiallyConsistent) }

  /// Replaces a word if it is the expected one. A lock taken so is released by `storeReleasing`.
  @inline(__always)
  func replace(_ index: Int, _ expected: UInt64, with value: UInt64) -> Bool {
    unsafe base[checked(index)].compareExchange(
      expected: expected, desired: value, ordering: .acquiring
    ).exchanged
  }

  @inline(__always)
  func increment(_ index: Int) {
    unsafe base[checked(index)].wrappingAdd(1, ordering: .relaxed)
  }

  func clear(_ index: Int, _ words: Int) {
    check(index, words)
    for i in index..<(index + words) { unsafe base[i].store(0, ordering: .relaxed) }
  }

  /// Copies words, lowest first: ranges may overlap when the target lies below.
  func copy(from source: Int, to target: Int, _ words: Int) {
    check(source, words)
    check(target, words)
    for i in 0..<words {
      unsafe base[target + i].store(base[source + i].load(ordering: .relaxed), ordering: .relaxed)
    }
  }

  /// Writes bytes; those that fill up the last word are zero.
  func write(_ bytes: RawSpan, at index: Int) {
    let whole = bytes.byteCount &>> 3
    check(index, Self.words(forBytes: bytes.byteCount))
    for i in 0..<whole {
      let word = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: i &<< 3, as: UInt64.self)
      unsafe base[index &+ i].store(word, ordering: .relaxed)
    }
    if bytes.byteCount & 7 != 0 {
      unsafe base[index &+ whole].store(Self.lastWord(bytes), ordering: .relaxed)
    }
  }

  /// Whether the bytes were written at `index`.
  @inline(__always)
  func holds(_ bytes: RawSpan, at index: Int) -> Bool {
    let whole = bytes.byteCount &>> 3
    check(index, Self.words(forBytes: bytes.byteCount))
    for i in 0..<whole {
      let word = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: i &<< 3, as: UInt64.self)
      if unsafe base[index &+ i].load(ordering: .relaxed) != word { return false }
    }
    if bytes.byteCount & 7 == 0 { return true }
    return unsafe base[index &+ whole].load(ordering: .relaxed) == Self.lastWord(bytes)
  }

  /// Copies words out.
  /// - Parameter target: has room for whole words.
  @unsafe
  @inline(__always)
  func read(_ index: Int, _ words: Int, into target: UnsafeMutableRawBufferPointer) {
    check(index, words)
    precondition(words &<< 3 <= target.count)
    guard let start = target.baseAddress else { return }
    for i in 0..<words {
      unsafe start.storeBytes(
        of: base[index &+ i].load(ordering: .relaxed), toByteOffset: i &<< 3, as: UInt64.self)
    }
  }

  /// A range as plain memory. Its users take turns by a word that one of them has by `replace`.
  @unsafe
  func plainBytes(_ index: Int, _ words: Int) -> UnsafeMutableRawBufferPointer {
    check(index, words)
    return unsafe UnsafeMutableRawBufferPointer(
      start: UnsafeMutableRawPointer(base + index), count: words * Self.wordBytes)
  }

  /// Gives whole pages of a range back to the system. Words hold their old value or zero then.
  func release(_ index: Int, _ words: Int) {
    let pages = pages(index, words, wholePages: true)
    guard !pages.isEmpty else { return }
    unsafe discardPages(UnsafeMutableRawPointer(base) + pages.lowerBound, pages.count)
  }

  /// The bytes of a range from the boundary of a page to that of another.
  /// - Parameter wholePages: whether a page that begins before the range is left out.
  private func pages(_ index: Int, _ words: Int, wholePages: Bool) -> Range<Int> {
    check(index, words)
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    guard page > 0 else { return 0..<0 }
    let start = (index * Self.wordBytes + (wholePages ? page - 1 : 0)) / page * page
    let end = (index + words) * Self.wordBytes / page * page
    return start..<max(start, end)
  }

  @inline(__always)
  private func checked(_ index: Int) -> Int {
    precondition(index >= 0 && index < count)
    return index
  }

  @inline(__always)
  private func check(_ index: Int, _ words: Int) {
    precondition(index >= 0 && words >= 0 && index <= count && words <= count &- index)
  }

  /// The bytes behind the last whole word, filled up with zeros.
  @inline(__always)
  private static func lastWord(_ bytes: RawSpan) -> UInt64 {
    let rest = bytes.byteCount & 7
    if bytes.byteCount > 8 {
      let word = unsafe bytes.unsafeLoadUnaligned(
        fromUncheckedByteOffset: bytes.byteCount &- 8, as: UInt64.self)
      return (UInt64(littleEndian: word) &>> UInt64(64 &- 8 &* rest)).littleEndian
    }
    var word: UInt64 = 0
    for i in 0..<rest {
      let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: i, as: UInt8.self)
      word |= UInt64(byte) &<< UInt64(8 &* i)
    }
    return word.littleEndian
  }
}
