import Testing

@testable import TidemarkEngine

@Suite("Bytes with right checksums and wrong contents")
struct HostileBytesTests {
  @Test("a head that names a label set where there is none is refused")
  func labelSet() throws {
    var heads = ByteWriter()
    let columns: HeadColumns = [.labelSets, .commitTimes]
    heads.u16(columns.rawValue)
    // The lengths of two texts: of the keys, and of the sets, which are none.
    heads.varint(2 << 2)
    heads.varint(1 << 2)
    for number in [0, 1 << 16] {
      heads.u8(0)
      heads.varint(number)
    }
    heads.raw([1, 0x6b])
    heads.varint(0)
    let header = FrameHeader(
      storedLength: heads.count, headsRawLength: 1, firstSequence: 1, durableThrough: 0,
      entryCount: 1, blockCount: 0, headsChecksum: 0, hasExplicitSequences: false,
      usesDictionary: false, frontLength: heads.count)
    let raw = heads.bytes
    let decoder = try HeadsDecoder(
      raw.rawSpan, header: header, codecs: FrameCodecs(contexts: ZstdContexts()))
    do throws(FormatError) {
      _ = try decoder.all()
      Issue.record("the head was taken")
    } catch { #expect(error.reason == "label set out of bounds") }
  }

  @Test("numbers in MANIFEST from which nobody could count on are refused", arguments: 0..<8)
  func manifestNumbers(_ which: Int) throws {
    var manifest = Manifest(
      storeID: [UInt8](repeating: 1, count: 16), replicaID: [UInt8](repeating: 2, count: 16),
      bootID: [UInt8](repeating: 3, count: 16), hashSeed: 4)
    manifest.epochs = [Manifest.Epoch(epoch: 9, firstSequence: 1)]
    manifest.runs = [Manifest.SortedRun(id: 1, sequence: 1, length: 1)]
    #expect(try Manifest(decoding: manifest.encoded().rawSpan) == manifest)
    switch which {
    case 0: manifest.generation = .max
    case 1: manifest.nextSegmentID = .max
    case 2: manifest.nextRunID = .max
    case 3: manifest.lastSequence = .max
    case 4: manifest.historyFrom = 1 << 48
    case 5: manifest.droppedThrough = .max
    case 6: manifest.epochs[0].firstSequence = .max
    default: manifest.runs[0].sequence = .max
    }
    #expect(throws: FormatError.self) { try Manifest(decoding: manifest.encoded().rawSpan) }
  }

  @Test("a locator that says more of a value than its block holds contradicts itself")
  func valueBeyondBlock() {
    let block = BlockRecord(
      offset: 8192, entry: BlockEntry(storedLength: 14, rawLength: 10, codec: .raw))
    func location(_ from: UInt32, _ to: UInt32) -> ValueLocation? {
      ValueLocation(
        segmentID: 1, place: ValuePlace(block: 0, position: from),
        next: ValuePlace(block: 0, position: to), block: { _ in block })
    }
    #expect(location(2, 10)?.length == 8)
    #expect(location(2, 11) == nil)
    #expect(location(2, 1) == nil)
  }

  @Test("a limit below zero admits no number")
  func negativeLimit() {
    let zero: [UInt8] = [0]
    var reader = ByteReader(zero.rawSpan)
    do throws(FormatError) {
      _ = try reader.varint(atMost: -1)
      Issue.record("the number was taken")
    } catch { #expect(error.reason == "number out of bounds") }
  }
}
