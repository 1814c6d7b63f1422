// SAFETY: every copy is of a range inside one page and inside the source array; `write`, `read`
// and `store` compute those ranges from the lengths of both, and arrays check their indices.

/// The bytes of a file, in pages that copies share until one of them writes.
///
/// A page that was never written is an empty array and reads as zeros, so that a large
/// preallocated file costs nothing.
struct PagedBytes: Sendable {
  static let pageBytes = 4096

  private var pages: [[UInt8]] = []
  /// The file's length in bytes. Bytes beyond it may exist until ``trim()``.
  private(set) var length = 0
  /// Pages from the start that have space on the disk though they may not be written yet.
  private(set) var reservedPages = 0

  init() {}

  init(_ bytes: [UInt8]) {
    write(bytes, bytes.indices, at: 0)
    extend(to: bytes.count)
  }

  static func pages(for length: Int) -> Int { (length + pageBytes - 1) / pageBytes }

  /// Pages with space on the disk.
  var usedPages: Int {
    reservedPages + pages.dropFirst(reservedPages).count { !$0.isEmpty }
  }

  private func isUsed(_ page: Int) -> Bool {
    page < reservedPages || (page < pages.count && !pages[page].isEmpty)
  }

  /// How many bytes of a range, from its start on, fit when only `free` more pages exist.
  func fitting(_ range: Range<Int>, free: Int) -> Int {
    var left = free
    var end = range.lowerBound
    while end < range.upperBound {
      let page = end / Self.pageBytes
      if !isUsed(page) {
        if left == 0 { break }
        left -= 1
      }
      end = min(range.upperBound, (page + 1) * Self.pageBytes)
    }
    return end - range.lowerBound
  }

  /// Pages that are missing up to a length.
  func missingPages(to length: Int) -> Int {
    (reservedPages..<max(reservedPages, Self.pages(for: length))).count { !isUsed($0) }
  }

  /// The bytes of a range, zeros where there are none.
  func read(_ range: Range<Int>) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: range.count)
    var offset = range.lowerBound
    while offset < range.upperBound {
      let page = offset / Self.pageBytes
      let within = offset % Self.pageBytes
      let count = min(Self.pageBytes - within, range.upperBound - offset)
      if page >= pages.count { break }
      if !pages[page].isEmpty {
        let start = offset - range.lowerBound
        unsafe result.withUnsafeMutableBytes { target in
          unsafe pages[page].withUnsafeBytes { source in
            unsafe UnsafeMutableRawBufferPointer(rebasing: target[start..<(start + count)])
              .copyMemory(from: .init(rebasing: source[within..<(within + count)]))
          }
        }
      }
      offset += count
    }
    return result
  }

  /// Stores a part of `bytes` at an offset; the length stays.
  mutating func write(_ bytes: [UInt8], _ part: Range<Int>, at offset: Int) {
    var done = 0
    while done < part.count {
      let page = (offset + done) / Self.pageBytes
      let within = (offset + done) % Self.pageBytes
      let count = min(Self.pageBytes - within, part.count - done)
      if page >= pages.count {
        pages.append(contentsOf: repeatElement([], count: page - pages.count + 1))
      }
      if pages[page].isEmpty { pages[page] = [UInt8](repeating: 0, count: Self.pageBytes) }
      let start = part.lowerBound + done
      unsafe pages[page].withUnsafeMutableBytes { target in
        unsafe bytes.withUnsafeBytes { source in
          unsafe UnsafeMutableRawBufferPointer(rebasing: target[within..<(within + count)])
            .copyMemory(from: .init(rebasing: source[start..<(start + count)]))
        }
      }
      done += count
    }
  }

  /// Makes the file at least that long.
  mutating func extend(to length: Int) { self.length = max(self.length, length) }

  /// Makes the file at least that long and gives it the space.
  mutating func reserve(to length: Int) {
    extend(to: length)
    reservedPages = max(reservedPages, Self.pages(for: length))
  }

  /// Cuts or extends the file; bytes beyond the new end are gone.
  mutating func setLength(_ length: Int) {
    self.length = length
    trim()
  }

  /// Drops bytes beyond the end.
  mutating func trim() {
    let keep = Self.pages(for: length)
    if pages.count > keep { pages.removeLast(pages.count - keep) }
    reservedPages = min(reservedPages, keep)
    let within = length % Self.pageBytes
    if within > 0, keep == pages.count, !pages[keep - 1].isEmpty {
      for index in within..<Self.pageBytes { pages[keep - 1][index] = 0 }
    }
  }
}

extension [UInt8] {
  /// Copies all bytes to the start of a span that is at least as long.
  func store(into span: inout MutableRawSpan) {
    unsafe span.withUnsafeMutableBytes { target in
      unsafe withUnsafeBytes { source in
        unsafe target.copyMemory(from: .init(rebasing: source.prefix(target.count)))
      }
    }
  }

  /// A hash of the bytes, for telling runs apart.
  var fingerprint: UInt64 {
    var hash = UInt64(count) &* 0x9e37_79b9_7f4a_7c15
    var offset = 0
    unsafe withUnsafeBytes { bytes in
      while offset <= bytes.count - 8 {
        let word = unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        hash = (hash ^ UInt64(littleEndian: word)) &* 0xff51_afd7_ed55_8ccd
        hash ^= hash >> 32
        offset += 8
      }
    }
    for byte in self[offset...] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return hash
  }
}
