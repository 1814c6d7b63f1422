// SAFETY: spans point into reserved memory that this object keeps.

/// A sorted run of the index on the disk: the newest slot of every key that was written in a range
/// of sequences. Immutable; the bytes of the file are told at ``RunLayout``.
///
/// Opening reads the header page only. Chunks of the rest are read and checked when they are first
/// needed, and stay in memory. Any number of threads may read at the same time. A run that a merge
/// has replaced can be read until the last reference to it goes, which closes the file.
package final class SortedRun: Sendable {
  package let header: RunHeader
  private let file: any File
  private let sealer: BlockSealer?
  private let memory: ReservedMemory
  /// How many look-ups have searched, see ``lookup(_:hash:)``.
  let searches = AtomicCounter()
  // Copies of what the header says of the sections that every look-up needs.
  private let blocks: RunHeader.Section
  private let blockOffsets: RunHeader.Section
  private let hash: RunHeader.Section

  /// Opens a sorted run, which closes the file when it is freed.
  /// - Parameter key: gives the user's key of an id, which the header of an encrypted sorted run
  ///   names. Without a key only the checksums of chunks can be checked, and other reads throw.
  /// - Throws: `runInvalid` if the header or the file's length is wrong. Then the caller still
  ///   owns the file.
  package init(
    file: any File, key: (Encryption.KeyID) throws(FormatError) -> [UInt8]? = { _ in nil }
  ) throws(IndexError) {
    let (length, page): (Int, [UInt8])
    do {
      length = try file.length()
      page = try file.read(RunLayout.headerBytes, at: 0)
    } catch { throw IndexError.fileSystem(error) }
    do throws(FormatError) {
      header = try RunHeader(page.rawSpan)
      guard
        length
          == RunLayout.fileBytes(dataBytes: header.dataBytes, tagBytes: header.tagBytes)
      else { throw FormatError("length of the file differs") }
      if let seal = header.seal, let key = try key(seal.keyID) {
        sealer = try seal.sealer(key: key, fileID: header.runID)
      } else {
        sealer = nil
      }
    } catch { throw IndexError.runInvalid(error) }
    do {
      memory = try ReservedMemory(byteCount: header.dataBytes, chunkShift: RunLayout.chunkShift)
    } catch { throw IndexError.fileSystem(error) }
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
    _ section: RunLayout.Section, _ offset: Int, _ count: Int
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
    let first = start >> RunLayout.chunkShift
    let last = (start + count - 1) >> RunLayout.chunkShift
    // Nearly all reads lie in one chunk or two; only longer ones ask for each chunk between.
    if last > first + 1
      || (count > 0 && (!memory.isLoaded(first) || (last > first && !memory.isLoaded(last))))
    {
      try load(first...last)
    }
    return unsafe _overrideLifetime(memory.bytes(start, count), borrowing: self)
  }

  /// Whether the first and the last of some bytes were read already, for decisions about speed: a
  /// chunk between them may still have to be read.
  func isLoaded(_ section: RunLayout.Section, _ offset: Int, _ count: Int) -> Bool {
    let place = header[section]
    guard offset >= 0, count > 0, offset <= place.bytes, count <= place.bytes - offset else {
      return false
    }
    let start = place.offset + offset
    return memory.isLoaded(start >> RunLayout.chunkShift)
      && memory.isLoaded((start + count - 1) >> RunLayout.chunkShift)
  }

  /// Whether the sorted run is encrypted and the user's key for it is not known.
  var isOpaque: Bool { header.seal != nil && sealer == nil }

  /// Checks the checksum of an encrypted chunk, which needs no key.
  func checkSealed(_ chunk: Int, count: Int) throws(IndexError) {
    _ = try RunChunk.readSealed(chunk..<(chunk + 1), of: header, from: file, count: count)
  }

  /// The error for contents that contradict each other, although their checksum is right.
  func damage(_ section: RunLayout.Section, _ offset: Int = 0) -> IndexError {
    damage(at: header[section].offset + offset)
  }

  private func damage(at offset: Int) -> IndexError {
    .runDamaged(chunk: offset >> RunLayout.chunkShift)
  }

  /// Copies a chunk, from memory if it is there, else from the file without keeping it in memory.
  func copyChunk(_ chunk: Int, into bytes: inout MutableRawSpan) throws(IndexError) {
    guard memory.isLoaded(chunk) else {
      return try RunChunk.read(chunk..<(chunk + 1), of: header, from: file, sealer, into: &bytes)
    }
    let memory = self.memory
    bytes.store(copying: memory.bytes(chunk << RunLayout.chunkShift, bytes.byteCount), at: 0)
  }

  @inline(never)
  private func load(_ wanted: ClosedRange<Int>) throws(IndexError) {
    let all = 0..<RunLayout.chunks(dataBytes: header.dataBytes)
    for chunk in wanted where !memory.isLoaded(chunk) {
      try memory.load(chunk, in: all) { (chunks, bytes) throws(IndexError) in
        try RunChunk.read(chunks, of: header, from: file, sealer, into: &bytes)
      }
    }
  }
}

/// Reads chunks of a sorted run: data, then a tag if it is encrypted, then a checksum of both.
enum RunChunk {
  /// Reads consecutive chunks of a sorted run from its file, compares their checksums, and
  /// decrypts them.
  /// - Parameters:
  ///   - sealer: decrypts the chunks of an encrypted sorted run, which count as damaged without it.
  ///   - bytes: gets the data of the chunks, and has just as many bytes.
  static func read(
    _ chunks: Range<Int>, of header: RunHeader, from file: any File, _ sealer: BlockSealer?,
    into bytes: inout MutableRawSpan
  ) throws(IndexError) {
    let sealed = try readSealed(chunks, of: header, from: file, count: bytes.byteCount)
    for chunk in chunks {
      let start = (chunk - chunks.lowerBound) << RunLayout.chunkShift
      let count = min(RunLayout.chunkBytes, bytes.byteCount - start)
      let place = (chunk - chunks.lowerBound) * RunLayout.storedChunkBytes(header.tagBytes)
      let stored = sealed.rawSpan.extracting(place..<(place + count + header.tagBytes))
      guard header.tagBytes > 0 else {
        bytes.store(copying: stored, at: start)
        continue
      }
      guard let sealer, let opened = try? sealer.open(stored, .run(chunk: chunk)),
        opened.count == count
      else { throw IndexError.runDamaged(chunk: chunk) }
      bytes.store(copying: opened.rawSpan, at: start)
    }
  }

  /// Chunks as stored, checked against their checksums, which needs no key.
  /// - Parameter count: the length of their data.
  static func readSealed(
    _ chunks: Range<Int>, of header: RunHeader, from file: any File, count: Int
  ) throws(IndexError) -> [UInt8] {
    let first = RunLayout.fileOffset(ofChunk: chunks.lowerBound, tagBytes: header.tagBytes)
    let stride = RunLayout.storedChunkBytes(header.tagBytes)
    let added = stride - RunLayout.chunkBytes
    let stored: [UInt8]
    do throws(FileSystemError) {
      stored = try file.read(count + chunks.count * added, at: first)
    } catch { throw IndexError.fileSystem(error) }
    for chunk in chunks {
      let number = chunk - chunks.lowerBound
      let start = number * stride
      // Every chunk of a sorted run but the last has 16 KiB. In a file that was cut short the
      // checksum lies beyond the bytes that were read, so that `u64(at:)` throws: the chunk is
      // damaged.
      let data = min(RunLayout.chunkBytes, count - number << RunLayout.chunkShift)
      let end = start + data + header.tagBytes
      let seed = RunLayout.checksumSeed(runID: header.runID, chunk: chunk)
      guard let sum = try? stored.rawSpan.u64(at: end),
        sum == XXH64.hash(stored.rawSpan.extracting(start..<end), seed: seed)
      else { throw IndexError.runDamaged(chunk: chunk) }
    }
    return stored
  }
}
