// SAFETY: pages are allocated whole and freed only in deinit, so what was handed out stays put
// as long as the store lives. Slot numbers are checked against `count`; key places are made
// here alone and always lie inside one page. Nothing is changed by reading, so that any number
// of threads may read while none writes.

/// The keys of a memtable and their slots, numbered as they are added.
///
/// Keys lie behind their lengths (2 bytes) in pages that never move; a record of 16 bytes holds the
/// slot and the place of the key. So a key costs 18 bytes and its own, and growing copies no key
/// and no record: no put waits for that.
///
/// ```
/// record: u64 sequence (48) | size class (8) | key place, high part (8)
///         u64 label set (32) | key place, low part (32)
/// ```
@safe
final class SlotStore {
  private struct Record {
    var first: UInt64
    var second: UInt64
  }

  /// A table of pages that grows.
  @unsafe
  private struct Pages<Page> {
    var base = UnsafeMutablePointer<Page>.allocate(capacity: 16)
    var count = 0
    private var room = 16

    mutating func append(_ page: Page) {
      if unsafe count == room {
        let larger = unsafe UnsafeMutablePointer<Page>.allocate(capacity: 2 * count)
        unsafe larger.moveInitialize(from: base, count: count)
        unsafe base.deallocate()
        unsafe base = larger
        unsafe room *= 2
      }
      unsafe (base + count).initialize(to: page)
      unsafe count += 1
    }
  }

  private static let recordsPerPageShift = 12
  private static let recordsPerPage = 1 << recordsPerPageShift
  private static let keyPageShift = 18
  private static let keyPageBytes = 1 << keyPageShift

  private(set) var count = 0
  /// Bytes of keys and lengths, with the gaps at the ends of pages: where the next key may go.
  private(set) var keyBytes = 0
  private var recordPages = unsafe Pages<UnsafeMutablePointer<Record>>()
  private var keyPages = unsafe Pages<UnsafeMutableRawPointer>()

  deinit {
    for page in unsafe 0..<recordPages.count { unsafe recordPages.base[page].deallocate() }
    for page in unsafe 0..<keyPages.count { unsafe keyPages.base[page].deallocate() }
    unsafe recordPages.base.deallocate()
    unsafe keyPages.base.deallocate()
  }

  var memoryBytes: Int { count * MemoryLayout<Record>.stride + keyBytes }

  /// Adds a key of at most 65,535 bytes; its number is `count` before the call.
  func append(_ key: RawSpan, _ slot: Slot) {
    let length = key.byteCount
    precondition(length <= Int(UInt16.max))
    let place = reserve(2 + length)
    let target = unsafe address(ofKeyAt: place)
    unsafe target.storeBytes(of: UInt16(length), as: UInt16.self)
    unsafe key.withUnsafeBytes { source in
      if let base = source.baseAddress {
        unsafe (target + 2).copyMemory(from: base, byteCount: length)
      }
    }
    if unsafe count == recordPages.count << Self.recordsPerPageShift {
      unsafe recordPages.append(.allocate(capacity: Self.recordsPerPage))
    }
    count += 1
    unsafe record(count - 1).initialize(
      to: Record(
        first: Self.pack(slot, placeHigh: UInt64(place) >> 32),
        second: UInt64(slot.labelSet) << 32 | UInt64(place) & 0xffff_ffff))
  }

  @inline(__always)
  func slot(_ number: Int) -> Slot {
    let record = unsafe record(number).pointee
    return Slot(
      sequence: record.first >> 16, labelSet: UInt32(truncatingIfNeeded: record.second >> 32),
      size: SizeClass(rawValue: UInt8(truncatingIfNeeded: record.first >> 8)))
  }

  @inline(__always)
  func replace(_ number: Int, _ slot: Slot) {
    let record = unsafe record(number)
    unsafe record.pointee.first = Self.pack(slot, placeHigh: record.pointee.first & 0xff)
    unsafe record.pointee.second = UInt64(slot.labelSet) << 32 | record.pointee.second & 0xffff_ffff
  }

  @_lifetime(borrow self)
  @inline(__always)
  func key(_ number: Int) -> RawSpan {
    let start = unsafe address(ofKey: number)
    let length = unsafe Int(start.load(as: UInt16.self))
    let bytes = unsafe RawSpan(_unsafeStart: start + 2, byteCount: length)
    return unsafe _overrideLifetime(bytes, borrowing: self)
  }

  /// Asks the processor for a record ahead of its use.
  @inline(__always)
  func prefetchRecord(_ number: Int) { unsafe prefetch(record(number)) }

  /// Asks the processor for a key ahead of its use; its record should be in memory by then.
  @inline(__always)
  func prefetchKey(_ number: Int) { unsafe prefetch(address(ofKey: number)) }

  /// Where the length and the bytes of a key stand.
  @unsafe
  @inline(__always)
  private func address(ofKey number: Int) -> UnsafeMutableRawPointer {
    let record = unsafe record(number).pointee
    let place = Int(record.first & 0xff) << 32 | Int(record.second & 0xffff_ffff)
    return unsafe address(ofKeyAt: place)
  }

  @unsafe
  @inline(__always)
  private func address(ofKeyAt place: Int) -> UnsafeMutableRawPointer {
    unsafe keyPages.base[place >> Self.keyPageShift] + (place & (Self.keyPageBytes - 1))
  }

  @unsafe
  @inline(__always)
  private func record(_ number: Int) -> UnsafeMutablePointer<Record> {
    precondition(number >= 0 && number < count)
    return unsafe recordPages.base[number >> Self.recordsPerPageShift]
      + (number & (Self.recordsPerPage - 1))
  }

  @inline(__always)
  private static func pack(_ slot: Slot, placeHigh: UInt64) -> UInt64 {
    slot.sequence << 16 | UInt64(slot.size.rawValue) << 8 | placeHigh
  }

  /// The place of the next `bytes` bytes, two-aligned; a key never crosses the end of a page.
  private func reserve(_ bytes: Int) -> Int {
    var place = (keyBytes + 1) & ~1
    let page = place >> Self.keyPageShift
    if unsafe page == keyPages.count || (place + bytes - 1) >> Self.keyPageShift != page {
      unsafe place = keyPages.count << Self.keyPageShift
      unsafe keyPages.append(.allocate(byteCount: Self.keyPageBytes, alignment: 16))
    }
    keyBytes = place + bytes
    return place
  }
}
