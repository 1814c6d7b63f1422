/// Reads frames and values of a segment for a repair.
final class RepairReader {
  private let file: TolerantFile
  private let window: WindowReader
  private let salt: UInt32
  private let codecs: FrameCodecs

  init(_ file: TolerantFile, salt: UInt32, codecs: FrameCodecs) throws(FileSystemError) {
    self.file = file
    self.salt = salt
    self.codecs = codecs
    window = try WindowReader(file)
  }

  func close() { file.close() }

  func scan(_ range: Range<Int>) -> FrameScan {
    FrameScan(
      window, salt: salt, codecs: codecs, from: range.lowerBound, end: range.upperBound)
  }

  /// A frame that was found before.
  /// - Returns: nil when it is not there any more.
  func front(at offset: Int) throws(FileSystemError) -> DecodedFront? {
    var scan = FrameScan(window, salt: salt, codecs: codecs, from: offset)
    guard case .frame(let front) = try scan.next() else { return nil }
    return front
  }

  /// A frame's values, one behind the other, with zeros where a block is damaged.
  struct Values {
    struct BadBlock {
      /// The block's share of `bytes`.
      var range: Range<Int>
      var offset: Int
      var reason: FormatError
    }

    var bytes: [UInt8] = []
    var bad: [BadBlock] = []
    /// Why values cannot be told apart; nil when they can.
    var problem: FormatError?

    /// The first damaged block that an entry's value needs.
    func firstBadBlock(of entry: EntryHead, in front: DecodedFront) -> BadBlock? {
      do { _ = try front.attributes(of: entry) } catch {
        return BadBlock(range: 0..<0, offset: front.offset, reason: error)
      }
      guard entry.valueLength > 0 else { return nil }
      let end = entry.valueOffset + entry.valueLength
      if let problem { return BadBlock(range: 0..<0, offset: front.offset, reason: problem) }
      guard end <= bytes.count else {
        return BadBlock(
          range: 0..<0, offset: front.offset, reason: FormatError("more values than blocks"))
      }
      return bad.first { $0.range.upperBound > entry.valueOffset && $0.range.lowerBound < end }
    }
  }

  /// Reads and decodes a frame's values as far as they are intact.
  func values(of front: DecodedFront) throws(FileSystemError) -> Values {
    var values = Values()
    do { _ = try front.places() } catch { values.problem = error }
    var position = front.offset + FormatConstants.frameHeaderBytes + front.header.frontLength
    for block in front.blocks {
      let start = values.bytes.count
      do throws(LogReadError) {
        let raw = try window.withBytes(at: position, count: block.storedLength) {
          (bytes) throws(FormatError) in
          try codecs.decode(
            try block.checked(bytes, salt: salt, at: position), block: block, at: position)
        }
        values.bytes.append(contentsOf: raw)
      } catch {
        guard case .format(let reason) = error else {
          if case .system(let error) = error { throw error }
          continue
        }
        values.bytes.append(contentsOf: repeatElement(0, count: block.rawLength))
        values.bad.append(
          Values.BadBlock(
            range: start..<values.bytes.count, offset: position, reason: reason))
      }
      position += block.storedLength
    }
    return values
  }

  /// The first page so far that overlaps a range and that the disk could not read.
  func unreadablePage(in range: Range<Int>) -> Int? {
    file.unreadablePages.first {
      $0 < range.upperBound && $0 + TolerantFile.pageBytes > range.lowerBound
    }
  }

  func isZero(_ range: Range<Int>) throws(FileSystemError) -> Bool {
    let walker = FrameWalker(
      window, salt: salt, codecs: codecs, from: range.lowerBound, end: range.upperBound)
    return try walker.isZero(from: range.lowerBound)
  }

  /// The sequences that a sorted segment's locator lists, ascending; nil when it is damaged.
  func sequencesHeld(by footer: SegmentFooter) -> [UInt64]? {
    guard let length = try? file.length(),
      let locator = try? SealedLocator(
        file: file, footer: footer, length: length, codecs: codecs)
    else { return nil }
    var sequences: [UInt64] = []
    for index in 0..<footer.sequenceCount {
      guard let record = try? locator.sequence(index) else { return nil }
      sequences.append(record.sequence)
    }
    return sequences
  }
}
