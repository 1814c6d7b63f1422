/// A sorted window of entries (``SortWindow``) in a temporary file, for the merge of a compaction.
///
/// MANIFEST does not list the file, and it is not synced: after a crash the next opening removes
/// it. In an encrypted store it is encrypted with a key that exists in memory alone.
///
/// ```
/// chunks, each: u32 stored length   u32 raw length   u64 XXH64 of the stored bytes
///               zstd of whole entries, see MergeEntry
/// ```
struct MergeRun: Sendable {
  /// Least raw bytes of a chunk, but for the last one.
  fileprivate static let chunkBytes = 64 << 10
  fileprivate static let chunkHeadBytes = 16
  private static let writeBytes = 1 << 20
  let path: String
  /// Open from the beginning until `remove`; readers share it.
  private let file: any File
  fileprivate let length: Int
  fileprivate let codecs: FrameCodecs

  /// Writes the entries of a window in order. Where that fails the caller removes the file.
  /// - Parameter sealer: encrypts it; nil where the store is not encrypted.
  init(
    creating path: String, _ window: SortWindow, fileSystem: any FileSystem,
    contexts: ZstdContexts, sealer: BlockSealer?
  ) throws(LogReadError) {
    self.path = path
    do { file = try fileSystem.open(path, .create) } catch { throw .system(error) }
    codecs = FrameCodecs(contexts: contexts, sealer: sealer)
    var output: [UInt8] = []
    var chunk: [UInt8] = []
    var written = 0
    do throws(LogReadError) {
      let offsets = window.sorted()
      for (number, offset) in offsets.enumerated() {
        let start = Int(offset)
        let isLast = number == offsets.count - 1
        do throws(FormatError) {
          let end = start + Int(try window.bytes.rawSpan.u32(at: start))
          chunk.append(copying: try window.bytes.rawSpan.slice(start, end - start))
          guard chunk.count >= Self.chunkBytes || isLast else { continue }
          try Self.encode(&chunk, at: written + output.count, to: &output, codecs)
        } catch { throw .format(error) }
        if output.count >= Self.writeBytes || isLast { try Self.write(&output, &written, to: file) }
      }
    } catch {
      file.close()
      throw error
    }
    length = written
  }

  private static func write(
    _ output: inout [UInt8], _ written: inout Int, to file: any File
  ) throws(LogReadError) {
    do { try file.writeFully(output.rawSpan, at: written) } catch { throw .system(error) }
    written += output.count
    output.removeAll(keepingCapacity: true)
  }

  private static func encode(
    _ chunk: inout [UInt8], at offset: Int, to output: inout [UInt8], _ codecs: FrameCodecs
  ) throws(FormatError) {
    let start = output.count
    output += repeatElement(0, count: chunkHeadBytes)
    let stored = output.count
    let codec = try codecs.encode(chunk.rawSpan, level: FrameCodecs.fastLevel, appendingTo: &output)
    try codecs.sealer?.seal(&output, from: stored, .block(at: offset))
    let sum = XXH64.hash(output.rawSpan.extracting(stored..<output.count))
    let lengths = (UInt32(output.count - stored), UInt32(chunk.count))
    output.withMutableRawSpan { bytes in
      bytes.put(lengths.0, at: start)
      // The highest bit marks a chunk that is stored as it is, since zstd made it no smaller.
      bytes.put(codec == .raw ? lengths.1 | 1 << 31 : lengths.1, at: start + 4)
      bytes.put(sum, at: start + 8)
    }
    chunk.removeAll(keepingCapacity: true)
  }

  func reader() throws(LogReadError) -> Reader { try Reader(self, file) }

  /// Closes and removes the file, once no reader is in use. A file that stays is a leftover.
  func remove(_ fileSystem: any FileSystem) {
    file.close()
    try? fileSystem.remove(path)
  }

  /// Goes through the chunks of a run.
  struct Reader {
    private let run: MergeRun
    private let window: WindowReader
    private var offset = 0

    fileprivate init(_ run: MergeRun, _ file: any File) throws(LogReadError) {
      self.run = run
      do { window = try WindowReader(file, windowBytes: 256 << 10) } catch { throw .system(error) }
    }

    /// The entries of the next chunk; nil at the end.
    mutating func next() throws(LogReadError) -> [UInt8]? {
      guard offset < run.length else { return nil }
      let size = MergeRun.chunkHeadBytes
      let (stored, raw, sum) = try window.withBytes(at: offset, count: size) {
        (bytes) throws(FormatError) in
        (Int(try bytes.u32(at: 0)), try bytes.u32(at: 4), try bytes.u64(at: 8))
      }
      let (place, codecs) = (offset, run.codecs)
      let codec: Codec = raw >> 31 == 1 ? .raw : .zstd
      let rawLength = Int(raw & (1 << 31 - 1))
      offset += size + stored
      return try window.withBytes(at: place + size, count: stored) {
        (bytes) throws(FormatError) in
        guard bytes.byteCount == stored, XXH64.hash(bytes) == sum else {
          throw FormatError("a run of a merge does not match its checksum")
        }
        guard codecs.sealer != nil else {
          return try codecs.decode(bytes, codec: codec, rawLength: rawLength)
        }
        let opened = try codecs.open(bytes, .block(at: place), authenticating: [])
        return try codecs.decode(opened.rawSpan, codec: codec, rawLength: rawLength)
      }
    }
  }
}
