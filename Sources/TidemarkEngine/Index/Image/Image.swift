// SAFETY: spans point into reserved memory that this object keeps.

/// An immutable index at one sequence, read from a file as far as it is needed.
///
/// Opening reads the header page only. The rest is read and checked chunk by chunk at first
/// touch. Any number of threads may read at the same time.
package final class Image: Sendable {
  package let header: ImageHeader
  private let file: any File
  private let memory: ReservedMemory
  private let loading = Lock(())
  // Sections that every look-up touches, out of the table.
  private let blocks: ImageHeader.Section
  private let blockOffsets: ImageHeader.Section
  private let hash: ImageHeader.Section

  /// Opens an image; the file is kept open as long as the image lives.
  /// - Throws: `imageInvalid` if the header or the file's length is wrong.
  package init(file: any File) throws(IndexError) {
    var page = [UInt8](repeating: 0, count: ImageLayout.headerBytes)
    let length: Int
    do {
      length = try file.length()
      let count = try page.withMutableRawSpan { (span) throws(FileSystemError) in
        try file.readFully(into: &span, at: 0)
      }
      page.removeLast(page.count - count)
    } catch {
      throw IndexError.fileSystem(error)
    }
    do throws(FormatError) {
      header = try ImageHeader(page.rawSpan)
      guard length == ImageLayout.fileBytes(dataBytes: header.dataBytes) else {
        throw FormatError("length of the file differs")
      }
    } catch {
      throw IndexError.imageInvalid(error)
    }
    do {
      memory = try ReservedMemory(
        byteCount: header.dataBytes, chunkShift: ImageLayout.chunkShift)
    } catch {
      throw IndexError.fileSystem(error)
    }
    self.file = file
    blocks = header[.blocks]
    blockOffsets = header[.blockOffsets]
    hash = header[.hash]
  }

  deinit { file.close() }

  /// How many keys there are, deleted ones too.
  package var count: Int { header.keys }

  /// Ids of labels that the image knows lie below this.
  var labelCount: Int { header[.labelOffsets].count }

  /// Bytes of memory that chunks read so far take.
  package var memoryBytes: Int { memory.loadedBytes }

  /// What the owner of the index stored beside it.
  package func userInfo() throws(IndexError) -> [UInt8] {
    [UInt8](copying: try bytes(.userInfo, 0, header[.userInfo].bytes))
  }

  /// Bytes of a section, read and checked if nobody did so yet.
  @_lifetime(borrow self)
  @inline(__always)
  func bytes(
    _ section: ImageLayout.Section, _ offset: Int, _ count: Int
  ) throws(IndexError) -> RawSpan {
    let place =
      switch section {
      case .blocks: blocks
      case .blockOffsets: blockOffsets
      case .hash: hash
      default: header[section]
      }
    guard offset >= 0, count >= 0, offset <= place.bytes, count <= place.bytes - offset else {
      throw damage(at: place.offset)
    }
    let memory = self.memory
    let start = place.offset + offset
    let first = start >> ImageLayout.chunkShift
    let last = (start + count - 1) >> ImageLayout.chunkShift
    if count > 0, !memory.isLoaded(first) || (last > first && !memory.isLoaded(last)) {
      try load(first...last)
    } else if last > first + 1 {
      try load(first...last)
    }
    return unsafe _overrideLifetime(memory.bytes(start, count), borrowing: self)
  }

  /// The error for contents that contradict each other, although their checksum is right.
  func damage(_ section: ImageLayout.Section, _ offset: Int = 0) -> IndexError {
    damage(at: header[section].offset + offset)
  }

  private func damage(at offset: Int) -> IndexError {
    .imageDamaged(chunk: offset >> ImageLayout.chunkShift)
  }

  /// Copies a chunk without keeping it, if it is not kept anyway.
  func copyChunk(_ chunk: Int, into bytes: inout MutableRawSpan) throws(IndexError) {
    guard memory.isLoaded(chunk) else {
      return try ImageChunk.read(chunk, of: header, from: file, into: &bytes)
    }
    let memory = self.memory
    bytes.store(
      copying: memory.bytes(chunk << ImageLayout.chunkShift, bytes.byteCount), at: 0)
  }

  @inline(never)
  private func load(_ chunks: ClosedRange<Int>) throws(IndexError) {
    for chunk in chunks where !memory.isLoaded(chunk) {
      try loading.withLock { (_) throws(IndexError) in
        if memory.isLoaded(chunk) { return }
        try memory.load(chunk) { (bytes) throws(IndexError) in
          try ImageChunk.read(chunk, of: header, from: file, into: &bytes)
        }
      }
    }
  }
}

/// Reading one chunk of an image.
enum ImageChunk {
  /// Fills `bytes`, of the chunk's length, and checks it.
  static func read(
    _ chunk: Int, of header: ImageHeader, from file: any File,
    into bytes: inout MutableRawSpan
  ) throws(IndexError) {
    let offset = ImageLayout.fileOffset(ofChunk: chunk)
    var sum = [UInt8](repeating: 0, count: ImageLayout.checksumBytes)
    let wanted = bytes.byteCount
    do throws(FileSystemError) {
      let count = try file.readFully(into: &bytes, at: offset)
      let sumCount = try sum.withMutableRawSpan { (span) throws(FileSystemError) in
        try file.readFully(into: &span, at: offset + wanted)
      }
      sum.removeLast(count == wanted ? sum.count - sumCount : sum.count)
    } catch {
      throw IndexError.fileSystem(error)
    }
    // A file that ends too early leaves a checksum that cannot be read.
    let seed = ImageLayout.checksumSeed(imageID: header.imageID, chunk: chunk)
    guard let stored = try? sum.rawSpan.u64(at: 0),
      stored == XXH64.hash(bytes.bytes, seed: seed)
    else { throw IndexError.imageDamaged(chunk: chunk) }
  }
}
