/// Writes a sorted run from front to back, in chunks with checksums.
struct SectionWriter {
  /// Whole chunks are collected until they have so many bytes, then written with one call.
  private static let writeBytes = 256 << 10

  private let file: any File
  private let fileKey: NewFileKey?
  private let sealer: BlockSealer?
  private(set) var header: RunHeader
  private var chunk: [UInt8] = []
  private var chunks = 0
  /// Chunks with their checksums that are to be written next, and where.
  private var output: [UInt8] = []
  private var written = RunLayout.headerBytes
  private var sectionStart = 0

  /// - Parameter fileKey: drawn for this sorted run; nil when it is not to be encrypted.
  init(_ file: any File, _ header: RunHeader, _ fileKey: NewFileKey?) {
    self.file = file
    self.fileKey = fileKey
    sealer = fileKey?.sealer(fileID: header.runID)
    self.header = header
    chunk.reserveCapacity(RunLayout.chunkBytes + RunLayout.checksumBytes)
  }

  /// Bytes of data so far, without checksums and what encryption adds.
  private var dataBytes: Int { chunks << RunLayout.chunkShift + chunk.count }

  /// Bytes of the present section so far.
  var sectionBytes: Int { dataBytes - sectionStart }

  /// Begins a section at a multiple of `alignment`.
  mutating func begin(alignment: Int = 8) throws(IndexError) {
    let odd = dataBytes % alignment
    if odd != 0 {
      let zeros = [UInt8](repeating: 0, count: alignment - odd)
      try append(zeros.rawSpan)
    }
    sectionStart = dataBytes
  }

  mutating func end(_ section: RunLayout.Section, count: Int) {
    header[section] = RunHeader.Section(
      offset: sectionStart, bytes: dataBytes - sectionStart, count: count)
  }

  mutating func write(
    _ section: RunLayout.Section, _ bytes: RawSpan, count: Int
  ) throws(IndexError) {
    try begin()
    try append(bytes)
    end(section, count: count)
  }

  /// Appends to the section begun last. `chunk` is never left full, so that there is always room.
  @inline(__always)
  mutating func append(_ bytes: RawSpan) throws(IndexError) {
    if bytes.byteCount < RunLayout.chunkBytes - chunk.count {
      chunk.append(copying: bytes)
    } else {
      try appendAcross(bytes)
    }
  }

  private mutating func appendAcross(_ bytes: RawSpan) throws(IndexError) {
    var rest = bytes
    while !rest.isEmpty {
      let room = RunLayout.chunkBytes - chunk.count
      chunk.append(copying: rest.extracting(first: room))
      rest = rest.extracting(droppingFirst: min(room, rest.byteCount))
      if chunk.count == RunLayout.chunkBytes { try flush() }
    }
  }

  private mutating func flush() throws(IndexError) {
    let seed = RunLayout.checksumSeed(runID: header.runID, chunk: chunks)
    // Encryption comes first: the checksum can then be verified without the key.
    do throws(FormatError) {
      try sealer?.seal(&chunk, from: 0, .run(chunk: chunks))
    } catch { throw .runInvalid(error) }
    output.append(contentsOf: chunk)
    output.append(XXH64.hash(chunk.rawSpan, seed: seed), bytes: RunLayout.checksumBytes)
    chunk.removeAll(keepingCapacity: true)
    chunks += 1
    if output.count >= Self.writeBytes { try writeOut() }
  }

  private mutating func writeOut() throws(IndexError) {
    try store(output.rawSpan, at: written)
    written += output.count
    output.removeAll(keepingCapacity: true)
  }

  /// Writes what is left, and the header at last: until then the file is no sorted run. Does not
  /// sync.
  /// - Parameter change: completes the header before it is encrypted and written.
  mutating func finish(_ change: (inout RunHeader) -> Void) throws(IndexError) {
    header.dataBytes = dataBytes
    if !chunk.isEmpty { try flush() }
    try writeOut()
    change(&header)
    do throws(FormatError) { try header.seal(with: fileKey) } catch { throw .runInvalid(error) }
    try store(header.encoded().rawSpan, at: 0)
  }

  private func store(_ bytes: RawSpan, at offset: Int) throws(IndexError) {
    do { try file.writeFully(bytes, at: offset) } catch { throw IndexError.fileSystem(error) }
  }
}
