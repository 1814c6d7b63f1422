internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The attachments whose content comes, or has come, for changes that a feed does not have yet.
package struct ArrivingAttachments: Sendable {
  struct Name: Sendable, Hashable {
    var replica: ReplicaID
    var attachment: AttachmentID
  }

  private var coming: [Name: AttachmentPartFile] = [:]
  /// Content that has come whole; the hold keeps it until an entry names it, and is nil then.
  private var arrived: [Name: (hold: AttachmentHold?, touched: UInt64)] = [:]
  /// So many are remembered that have come.
  private static let mostRemembered = 4_096

  package init() {}

  /// Finds what an earlier opening has left.
  init(_ engine: Engine) throws(TidemarkError) {
    guard engine.configuration.access != .readOnly else { return }
    for (name, part) in try engine.attachments.parts() {
      // Contents that this store fetches itself come for nobody.
      guard let replica = ReplicaID(name.owner), replica != .none else { continue }
      coming[Name(replica: replica, attachment: part.id)] = part
    }
  }

  /// How many are on their way.
  var count: Int { coming.count }

  /// The bytes on the disk of these, and of those that wait for their changes.
  var bytes: Int {
    coming.values.reduce(0) { $0 + $1.storedBytes }
      + arrived.reduce(0) {
        $0 + ($1.value.hold == nil ? 0 : Int(clamping: $1.key.attachment.length))
      }
  }

  subscript(name: Name) -> AttachmentPartFile? {
    get { coming[name] }
    set { coming[name] = newValue }
  }

  /// Whether a replica has brought a content.
  func hasBrought(_ name: Name) -> Bool { arrived[name] != nil }

  /// Content has come whole.
  mutating func arrive(_ name: Name, _ hold: AttachmentHold, at now: UInt64) {
    coming[name] = nil
    arrived[name] = (hold, now)
    guard arrived.count > Self.mostRemembered else { return }
    // Contents that entries name go first, and of these the oldest.
    func order(_ row: (hold: AttachmentHold?, touched: UInt64)) -> (Int, UInt64) {
      (row.hold == nil ? 0 : 1, row.touched)
    }
    let old = arrived.min { order($0.value) < order($1.value) }
    if let old { arrived[old.key] = nil }
  }

  /// Entries name these now: nothing else need keep them.
  mutating func claim(_ attachments: [AttachmentID], for replica: ReplicaID) {
    for attachment in attachments {
      arrived[Name(replica: replica, attachment: attachment)]?.hold = nil
    }
  }

  /// Contents that nobody has gone on with since, the longest idle first.
  func untouched(since time: UInt64, but name: Name? = nil) -> [Name] {
    let all =
      coming.map { ($0.key, $0.value.touched) }
      + arrived.filter { $0.value.hold != nil }.map { ($0.key, $0.value.touched) }
    return all.filter { $0.1 < time && $0.0 != name }.sorted { $0.1 < $1.1 }.map(\.0)
  }

  /// Gives up what has come.
  mutating func drop(_ name: Name) {
    coming.removeValue(forKey: name)?.cancel()
    // The content goes at the store's next sweep.
    arrived[name] = nil
  }
}
