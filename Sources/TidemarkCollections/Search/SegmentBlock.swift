internal import TidemarkEngine

/// A part of a segment: words in order, each with its postings.
///
/// ```
/// varint  bytes shared with the word before, varint length of the rest, the rest
/// varint  documents, varint length of the postings, postings
/// ```
enum SegmentBlock {
  /// A block is ended when it has so many bytes; a word is never divided.
  static let bytes = 16 << 10

  /// Calls `body` with each word and a way to its postings, until it says that it is enough.
  static func forEach(
    _ block: RawSpan,
    _ body: (_ word: [UInt8], _ count: Int, _ postings: Range<Int>) throws(TidemarkError) -> Bool
  ) throws(TidemarkError) {
    var reader = ByteReader(block)
    var word: [UInt8] = []
    while reader.remaining > 0 {
      let count: Int
      let range: Range<Int>
      do throws(FormatError) {
        let shared = try reader.varint(atMost: word.count)
        word.removeLast(word.count - shared)
        word += try reader.blob()
        count = try reader.varint(atMost: .max)
        let length = try reader.varint(atMost: reader.remaining)
        range = reader.offset..<(reader.offset + length)
        _ = try reader.skip(length)
      } catch { throw IndexKeys.damaged("a block of a full-text index") }
      guard try body(word, count, range) else { return }
    }
  }
}

/// Writes the words of a segment, in order, as blocks.
struct SegmentWriter {
  private let index: UInt32
  private let segment: UInt32
  private let engine: Engine
  private let takeovers: UInt64
  private var batch = OperationBatch()
  private var block = ByteWriter()
  private var firstWord: [UInt8] = []
  private var lastWord: [UInt8] = []
  private var pendingBytes = 0

  /// Blocks are committed when there are so many bytes of them.
  private static let bytesPerCommit = 1 << 20

  /// - Parameter takeovers: see `Engine.takeovers`; after another one the segment's number may be
  ///   another process's.
  init(_ engine: Engine, index: UInt32, segment: UInt32, takeovers: UInt64) {
    self.engine = engine
    self.takeovers = takeovers
    self.index = index
    self.segment = segment
  }

  mutating func add(_ word: [UInt8], _ postings: Postings) throws(TidemarkError) {
    guard !postings.isEmpty else { return }
    if block.count >= SegmentBlock.bytes { try endBlock() }
    if block.count == 0 { (firstWord, lastWord) = (word, []) }
    let shared = word.rawSpan.commonPrefix(with: lastWord.rawSpan)
    block.varint(shared)
    block.varint(word.count - shared)
    block.raw(Array(word[shared...]))
    var list = ByteWriter()
    postings.encode(into: &list)
    block.varint(postings.count)
    block.varint(list.count)
    block.raw(list.bytes)
    lastWord = word
  }

  private mutating func endBlock() throws(TidemarkError) {
    guard block.count > 0 else { return }
    let key = SearchKeys.blocks(index, segment) + firstWord
    let bytes = block.bytes
    try batch.addDerived(key.rawSpan, bytes.rawSpan)
    pendingBytes += block.count
    block = ByteWriter()
    if pendingBytes >= Self.bytesPerCommit { try commit() }
  }

  private mutating func commit() throws(TidemarkError) {
    guard !batch.operations.isEmpty else { return }
    batch.takeovers = takeovers
    _ = try engine.stage(batch)
    batch = OperationBatch()
    pendingBytes = 0
  }

  /// Writes what is left, and how long the documents are.
  mutating func finish(lengths: [UInt8]) throws(TidemarkError) {
    try endBlock()
    let key = SearchKeys.lengths(index, segment)
    try batch.addDerived(key.rawSpan, lengths.rawSpan)
    try commit()
  }
}

/// Reads the words of a segment, in order.
struct SegmentReader {
  private let engine: Engine
  private let scan: EngineScan
  private var keys: [ScanRow] = []
  private var next = 0
  private var words: [(word: [UInt8], postings: Postings)] = []
  private var nextWord = 0

  init(_ engine: Engine, index: UInt32, segment: UInt32, view: EngineView) {
    self.engine = engine
    scan = EngineScan(
      engine.reader, ScanQuery(prefix: SearchKeys.blocks(index, segment)), view: view)
  }

  /// The word that comes next; nil at the end.
  mutating func peek() throws(TidemarkError) -> (word: [UInt8], postings: Postings)? {
    while nextWord == words.count {
      if next == keys.count {
        keys = try scan.nextPage(limit: 64)
        next = 0
        if keys.isEmpty { return nil }
      }
      words = []
      nextWord = 0
      let key = keys[next].key
      next += 1
      _ = try engine.reader.read(forKey: key.rawSpan) { (value, _) throws(TidemarkError) in
        try SegmentBlock.forEach(value) { (word, count, range) throws(TidemarkError) in
          words.append((word, try Postings(decoding: value.extracting(range), count: count)))
          return true
        }
      }
    }
    return words[nextWord]
  }

  mutating func drop() { nextWord += 1 }
}
