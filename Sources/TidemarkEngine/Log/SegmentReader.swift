/// Reads the fixed parts of a segment's file: header, dictionary, footer, locator.
package enum SegmentReader {
  /// The header, from whichever of its two copies is intact.
  package static func header(_ file: any File) throws(LogReadError) -> SegmentHeader {
    let page = FormatConstants.segmentHeaderPageBytes
    var failure = LogReadError.format(FormatError("segment has no header"))
    for copy in 0..<2 {
      do throws(FileSystemError) {
        let bytes = try file.read(page, at: copy * page)
        do { return try SegmentHeader(decodingPage: bytes.rawSpan) } catch {
          // A copy that the disk cannot read may be whole: that error counts before damage.
          if case .format = failure { failure = .format(error) }
        }
      } catch {
        guard error.isUnreadable else { throw .system(error) }
        failure = .system(error)
      }
    }
    throw failure
  }

  /// Codecs with the segment's dictionary, from whichever of its copies is intact.
  /// - Parameter sealer: decrypts the segment; nil where it is not encrypted.
  package static func codecs(
    _ file: any File, header: SegmentHeader, contexts: ZstdContexts, sealer: BlockSealer?
  ) throws(LogReadError) -> FrameCodecs {
    guard let dictionary = header.dictionary else {
      return FrameCodecs(contexts: contexts, sealer: sealer)
    }
    var failure = LogReadError.format(FormatError("dictionary does not match its checksum"))
    for offset in dictionary.offsets {
      let bytes: [UInt8]
      do { bytes = try file.read(dictionary.length, at: offset) } catch {
        guard error.isUnreadable else { throw .system(error) }
        failure = .system(error)
        continue
      }
      guard bytes.count == dictionary.length,
        XXH64.hash(bytes.rawSpan) == dictionary.checksum
      else { continue }
      do {
        let loaded = try self.dictionary(bytes, sealer)
        return FrameCodecs(contexts: contexts, dictionary: loaded, sealer: sealer)
      } catch { throw .format(error) }
    }
    throw failure
  }

  /// A dictionary from its stored bytes, prepared for decompression only, which is faster.
  package static func dictionary(
    _ stored: [UInt8], _ sealer: BlockSealer?
  ) throws(FormatError) -> ZstdDictionary {
    let bytes = try sealer?.open(stored.rawSpan, .dictionary) ?? stored
    return try ZstdDictionary(bytes)
  }

  /// The footer of a sealed segment.
  /// - Parameters:
  ///   - length: the length that the segment was sealed with.
  ///   - isCut: whether the file may have another length now, and is read all the same.
  package static func footer(
    _ file: any File, length: Int, salt: UInt32, isCut: Bool = false
  ) throws(LogReadError) -> SegmentFooter {
    let size = FormatConstants.segmentFooterBytes
    guard length >= FormatConstants.segmentHeaderBytes + size else {
      throw .format(FormatError("segment is too short to be sealed"))
    }
    let bytes: [UInt8]?
    do throws(FileSystemError) {
      let found = isCut ? length : try file.length()
      bytes = found == length ? try file.read(size, at: length - size) : nil
    } catch { throw .system(error) }
    guard let bytes else {
      throw .format(FormatError("segment has another length than it was sealed with"))
    }
    do { return try SegmentFooter(decoding: bytes.rawSpan, salt: salt) } catch {
      throw .format(error)
    }
  }

  /// The locator of a sealed segment, whose footer must be that of the segment.
  /// - Parameter length: the length that the segment was sealed with.
  package static func locator(
    _ file: any File, segment: Segment, length: Int, codecs: FrameCodecs
  ) throws(LogReadError) -> SealedLocator {
    let footer = try footer(file, length: length, salt: segment.salt)
    guard footer.segmentID == segment.id, footer.firstSequence == segment.firstSequence else {
      throw .format(FormatError("footer of another segment"))
    }
    return try SealedLocator(file: file, footer: footer, length: length, codecs: codecs)
  }
}
