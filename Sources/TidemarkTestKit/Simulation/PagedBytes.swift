// SAFETY: every copy is of a range inside one page and inside the source array; `write`, `read`
// and `store` compute those ranges from the lengths of both, and arrays check their indices.

/// The bytes of a file, in pages that copies share until one of them writes.
///
/// Pages are kept in chunks, so that the first write after a copy need not touch all of a large
/// file. A page or chunk that was never written is an empty array and reads as zeros, so that a
/// large preallocated file costs nothing.
struct PagedBytes: Sendable {
  static let pageBytes = 4096
  private static let chunkPages = 64

  private var chunks: [[[UInt8]]] = []
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
    let written = reservedPages..<max(reservedPages, chunks.count * Self.chunkPages)
    return reservedPages + written.count { !self.page($0).isEmpty }
  }

  private func page(_ page: Int) -> [UInt8] {
    let chunk = page / Self.chunkPages
    guard chunk < chunks.count, !chunks[chunk].isEmpty else { return [] }
    return chunks[chunk][page % Self.chunkPages]
  }

  private func isUsed(_ page: Int) -> Bool {
    page < reservedPages || !self.page(page).isEmpty
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
      let bytes = self.page(page)
      if !bytes.isEmpty {
        let start = offset - range.lowerBound
        unsafe result.withUnsafeMutableBytes { target in
          unsafe bytes.withUnsafeBytes { source in
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
      let chunk = page / Self.chunkPages
      let place = page % Self.chunkPages
      prepare(page)
      let start = part.lowerBound + done
      unsafe chunks[chunk][place].withUnsafeMutableBytes { target in
        unsafe bytes.withUnsafeBytes { source in
          unsafe UnsafeMutableRawBufferPointer(rebasing: target[within..<(within + count)])
            .copyMemory(from: .init(rebasing: source[start..<(start + count)]))
        }
      }
      done += count
    }
  }

  /// Makes a page that can be written.
  private mutating func prepare(_ page: Int) {
    let chunk = page / Self.chunkPages
    let place = page % Self.chunkPages
    if chunk >= chunks.count {
      chunks.append(contentsOf: repeatElement([], count: chunk - chunks.count + 1))
    }
    if chunks[chunk].isEmpty { chunks[chunk] = Array(repeating: [], count: Self.chunkPages) }
    if chunks[chunk][place].isEmpty {
      chunks[chunk][place] = [UInt8](repeating: 0, count: Self.pageBytes)
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
    reservedPages = min(reservedPages, keep)
    let keepChunks = (keep + Self.chunkPages - 1) / Self.chunkPages
    if chunks.count > keepChunks { chunks.removeLast(chunks.count - keepChunks) }
    if keepChunks > 0, chunks.count == keepChunks {
      let first = (keepChunks - 1) * Self.chunkPages
      for page in keep..<(keepChunks * Self.chunkPages) where !self.page(page).isEmpty {
        chunks[keepChunks - 1][page - first] = []
      }
    }
    let within = length % Self.pageBytes
    guard within > 0, !page(keep - 1).isEmpty else { return }
    let zeros = [UInt8](repeating: 0, count: Self.pageBytes - within)
    write(zeros, zeros.indices, at: length)
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
