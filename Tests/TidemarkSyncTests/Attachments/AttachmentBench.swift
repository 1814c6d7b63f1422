import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// Content by chance.
func content(_ count: Int, _ seed: UInt64 = 1) -> [UInt8] {
  var random = SeededGenerator(seed: seed)
  return random.bytes(count)
}

extension AttachmentReference {
  static func of(_ content: [UInt8]) -> AttachmentReference {
    AttachmentReference(sha256: SHA256.hash(content.rawSpan), length: content.count)
  }
}

extension Bench {
  /// Sends a part of a content; an empty range asks how much is there.
  func attach(
    _ device: Device, _ content: [UInt8], _ range: Range<Int>, key: String = "film",
    access: SyncAccess = .everything
  ) throws -> AttachAnswer {
    try handler().attach(
      AttachRequest(
        replica: device.id, key: Array(key.utf8), attachment: .of(content),
        offset: range.lowerBound, bytes: Array(content[range])), access: access)
  }

  /// The content that a key's entry names, as far as it is to be had.
  func fetch(
    _ content: [UInt8], key: String = "film", access: SyncAccess = .everything
  ) throws -> [UInt8]? {
    var read: [UInt8] = []
    repeat {
      let answer = try handler().fetch(
        ContentRequest(
          replica: Device(77).id, key: Array(key.utf8), attachment: .of(content),
          offset: read.count, limit: 100_000), access: access)
      guard let bytes = answer.bytes else { return nil }
      read += bytes
    } while read.count < content.count
    return read
  }
}

extension Device {
  mutating func put(
    _ key: String, attachment content: [UInt8], labels: [EntryLabel] = [],
    base: ChangeBase = .absent
  ) -> PushedChange {
    var change = put(key, "1", labels: labels, base: base)
    change.content.attachment = .of(content)
    return change
  }
}

extension SyncWorld {
  /// A device puts a key with an attachment.
  @discardableResult
  func attach(_ index: Int, _ key: String, _ content: [UInt8]) throws -> AttachmentID {
    let engine = devices[index].engine
    let writer = try engine.newAttachment()
    try writer.write(content.rawSpan)
    let hold = try writer.finish()
    var batch = OperationBatch()
    var attributes = EntryAttributes()
    attributes.attachment = hold.id
    try batch.add(
      .put, key: Array(key.utf8).rawSpan, value: Array("1".utf8).rawSpan, attributes: attributes)
    try engine.commit(batch)
    return hold.id
  }

  /// The content that an engine has of an attachment; nil for none.
  static func content(_ engine: Engine, _ id: AttachmentID) throws -> [UInt8]? {
    guard let reader = try engine.openAttachment(id) else { return nil }
    defer { reader.close() }
    var content: [UInt8] = []
    while content.count < reader.length {
      content += try reader.read(at: content.count, count: reader.length)
    }
    return content
  }
}
