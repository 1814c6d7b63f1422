// SAFETY: spans point into reserved memory that this object keeps.

/// A run of the index: what a range of sequences made of their keys, immutable, and read from a
/// file as far as it is needed.
///
/// Opening reads the header page only. The rest is read and checked chunk by chunk at first
/// touch. Any number of threads may read at the same time.
package final class Image: Sendable {
  package let header: ImageHeader
  private let file: any File
  private let sealer: BlockSealer?
  private let memory: ReservedMemory
  private let loading = Lock(())
  // Sections that every look-up touches, out of the table.
  private let blocks: ImageHeader.Section
  private let blockOffsets: ImageHeader.Section
  private let hash: ImageHeader.Section

  /// Opens an image; the file is kept open as long as the image lives.
  /// - Parameter key: the user's key that the header of an encrypted image names; gets its id.
  ///   nil gives an image whose checksums can be checked and nothing else.
  /// - Throws: `imageInvalid` if the header or the file's length is wrong.
  package init(
    file: any File, key: (Encryption.KeyID) throws(FormatError) -> [UInt8]? = { _ in nil }
  ) throws(IndexError) {
    let (length, page): (Int, [UInt8])
    do {
      length = try file.length()
      page = try file.read(ImageLayout.headerBytes, at: 0)
    } catch {
      throw IndexError.fileSystem(error)
    }
    do throws(FormatError) {
      header = try ImageHeader(page.rawSpan)
      guard
        length
          == ImageLayout.fileBytes(dataBytes: header.dataBytes, tagBytes: header.tagBytes)
      else { throw FormatError("length of the file differs") }
      if let seal = header.seal, let key = try key(seal.keyID) {
        sealer = try seal.sealer(key: key, fileID: header.imageID)
      } else {
        sealer = nil
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

  /// Bytes of memory that chunks read so far take.
  package var memoryBytes: Int { memory.loadedBytes }

  /// The bytes that the owner of the index stored beside it.
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

  /// Whether some bytes of a section were read already.
  func isLoaded(_ section: ImageLayout.Section, _ offset: Int, _ count: Int) -> Bool {
    let place = header[section]
    guard offset >= 0, count > 0, offset <= place.bytes, count <= place.bytes - offset else {
      return false
    }
    let start = place.offset + offset
    return memory.isLoaded(start >> ImageLayout.chunkShift)
      && memory.isLoaded((start + count - 1) >> ImageLayout.chunkShift)
  }

  /// Whether the image is encrypted and its key not known.
  var isOpaque: Bool { header.seal != nil && sealer == nil }

  /// Checks the checksum of a chunk that cannot be decrypted.
  func checkSealed(_ chunk: Int, count: Int) throws(IndexError) {
    _ = try ImageChunk.readSealed(chunk, of: header, from: file, count: count)
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
      return try ImageChunk.read(chunk, of: header, from: file, sealer, into: &bytes)
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
          try ImageChunk.read(chunk, of: header, from: file, sealer, into: &bytes)
        }
      }
    }
  }
}

/// Reading one chunk of an image.
enum ImageChunk {
  /// Fills `bytes`, of the chunk's length, and checks it.
  /// - Parameter sealer: decrypts it, where it is encrypted.
  static func read(
    _ chunk: Int, of header: ImageHeader, from file: any File, _ sealer: BlockSealer?,
    into bytes: inout MutableRawSpan
  ) throws(IndexError) {
    guard header.tagBytes == 0 else {
      let stored = try readSealed(chunk, of: header, from: file, count: bytes.byteCount)
      guard let sealer,
        let opened = try? sealer.open(stored.rawSpan, .image(chunk: chunk)),
        opened.count == bytes.byteCount
      else { throw IndexError.imageDamaged(chunk: chunk) }
      return bytes.store(copying: opened.rawSpan, at: 0)
    }
    let offset = ImageLayout.fileOffset(ofChunk: chunk, tagBytes: 0)
    let (count, sum): (Int, [UInt8])
    do throws(FileSystemError) {
      count = try file.readFully(into: &bytes, at: offset)
      sum = try file.read(ImageLayout.checksumBytes, at: offset + bytes.byteCount)
    } catch {
      throw IndexError.fileSystem(error)
    }
    let seed = ImageLayout.checksumSeed(imageID: header.imageID, chunk: chunk)
    guard count == bytes.byteCount, let stored = try? sum.rawSpan.u64(at: 0),
      stored == XXH64.hash(bytes.bytes, seed: seed)
    else { throw IndexError.imageDamaged(chunk: chunk) }
  }

  /// An encrypted chunk and its tag, as stored, checked against their checksum.
  static func readSealed(
    _ chunk: Int, of header: ImageHeader, from file: any File, count: Int
  ) throws(IndexError) -> [UInt8] {
    let sealed = count + header.tagBytes
    var stored: [UInt8]
    do throws(FileSystemError) {
      stored = try file.read(
        sealed + ImageLayout.checksumBytes,
        at: ImageLayout.fileOffset(ofChunk: chunk, tagBytes: header.tagBytes))
    } catch {
      throw IndexError.fileSystem(error)
    }
    let seed = ImageLayout.checksumSeed(imageID: header.imageID, chunk: chunk)
    guard let sum = try? stored.rawSpan.u64(at: sealed),
      sum == XXH64.hash(stored.rawSpan.extracting(0..<sealed), seed: seed)
    else { throw IndexError.imageDamaged(chunk: chunk) }
    stored.removeLast(stored.count - sealed)
    return stored
  }
}
