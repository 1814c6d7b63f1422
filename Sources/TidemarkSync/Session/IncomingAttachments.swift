internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Decides when a replicator fetches the content of attachments, and whether the device keeps
/// content after its upload.
public struct AttachmentPolicy: Sendable, Hashable {
  /// When the replicator fetches content that other replicas have attached.
  public enum Fetching: Sendable, Hashable {
    /// The replicator fetches content only when you call
    /// ``Replicator/fetchAttachment(forKey:progress:)``.
    case onDemand
    /// The replicator fetches content of at most `upTo` bytes as soon as it pulls the entry. It
    /// leaves larger content to ``onDemand``.
    case eager(upTo: Int)
  }

  /// What happens to the local content once the peer has accepted it with its entry.
  public enum AfterUpload: String, Sendable, Hashable, CaseIterable {
    /// The content stays on this device.
    case keep
    /// The store deletes the content, as by `Store.releaseAttachment(_:)`, unless another peer
    /// still has to get it from this store. Fetch the content to read it again.
    case release
  }

  /// When the replicator fetches content that other replicas have attached. The default is
  /// ``Fetching/onDemand``.
  public var fetching: Fetching
  /// Whether the device keeps or deletes content that the peer has accepted. The default is
  /// ``AfterUpload/keep``.
  public var afterUpload: AfterUpload

  /// Creates the attachment rules of a replicator.
  /// - Parameters:
  ///   - fetching: when content of other replicas is fetched; on demand by default.
  ///   - afterUpload: whether content stays on the device after its upload; it does by default.
  public init(fetching: Fetching = .onDemand, afterUpload: AfterUpload = .keep) {
    self.fetching = fetching
    self.afterUpload = afterUpload
  }
}

/// The queue of attachments to fetch without a request of the program. It is in memory only: the
/// store lists the entries whose content it lacks.
struct IncomingAttachments {
  /// The most rows of the queue; the store is asked for more when it is empty.
  private static let mostRows = 1_024

  private(set) var rows: [(id: AttachmentID, key: [UInt8])] = []
  /// Contents that could not be stored; they are fetched again after the next hello.
  private var failed: Set<AttachmentID> = []
  /// Contents that the peer does not have, or the authorization does not cover. They are requested
  /// again after a hello that shows a longer feed or another authorization.
  private var absent: Set<AttachmentID> = []
  /// The feed's end and the authorization's fingerprint at the last hello.
  private var startedAt: (head: UInt64, reach: UInt64?)?
  /// Whether the store may list entries that are not in the queue.
  var mayLackSome = true
  /// The file that gets the part requested last.
  var part: AttachmentPartFile?

  var isEmpty: Bool { rows.isEmpty && !mayLackSome }

  mutating func forgetPeer() {
    if !failed.isEmpty { mayLackSome = true }
    failed = []
    part = nil
  }

  mutating func startAt(head: UInt64, reach: UInt64?) {
    defer { startedAt = (head, reach) }
    guard let startedAt, startedAt.head != head || startedAt.reach != reach else { return }
    if !absent.isEmpty { mayLackSome = true }
    absent = []
  }

  mutating func add(_ id: AttachmentID, _ key: [UInt8]) {
    guard !failed.contains(id), !absent.contains(id) else { return }
    guard rows.count < Self.mostRows else { return mayLackSome = true }
    if !rows.contains(where: { $0.id == id }) { rows.append((id, key)) }
  }

  /// Removes the first row: its content is stored, or cannot be fetched.
  mutating func removeFirst(hasFailed: Bool = false, isAbsent: Bool = false) {
    part = nil
    guard !rows.isEmpty else { return }
    let row = rows.removeFirst()
    if hasFailed { failed.insert(row.id) }
    if isAbsent { absent.insert(row.id) }
  }
}

extension SyncSession {
  private var mostFetched: Int? {
    guard case .eager(let most) = attachmentPolicy.fetching, most > 0 else { return nil }
    return most
  }

  var isFetching: Bool { mostFetched != nil && attachmentBytes != nil && !incoming.isEmpty }

  func fetchLater(_ id: AttachmentID?, ofKey key: [UInt8]) {
    guard let id, let most = mostFetched, id.length <= UInt64(most) else { return }
    incoming.add(id, key)
  }

  /// The next part to fetch; nil when there is none, or the budget allows none.
  func nextFetch() throws(TidemarkError) -> ContentRequest? {
    while isFetching, !gate.isNarrow {
      guard let row = incoming.rows.first else {
        incoming.mayLackSome = false
        for sequence in try log.engine.entriesWithoutContent() {
          // The peer gives no content of entries outside of the scope.
          if let change = try log.change(at: sequence),
            scope.contains(key: change.key, labels: change.labels)
          {
            fetchLater(change.attributes.attachment, ofKey: change.key)
          }
        }
        continue
      }
      do throws(TidemarkError) {
        if try log.engine.holdContent(of: row.id) != nil {
          incoming.removeFirst()
          continue
        }
        guard let part = try log.contentPart(of: row.id) else { continue }
        incoming.part = part
        let limit = max(
          AttachRequest.partBytes,
          min(gate.bytes, AttachRequest.mostBytes) / AttachRequest.partBytes
            * AttachRequest.partBytes)
        return ContentRequest(
          replica: replica, key: row.key, attachment: AttachmentReference(row.id),
          offset: part.received, limit: limit)
      } catch {
        guard [.noSpace, .damaged].contains(error.code) else { throw error }
        incoming.removeFirst(hasFailed: true)
      }
    }
    return nil
  }

  func handle(_ answer: ContentAnswer) throws {
    guard let part = incoming.part else { return }
    guard let bytes = answer.bytes else { return incoming.removeFirst(isAbsent: true) }
    do throws(TidemarkError) {
      let before = part.received
      let received = try part.append(bytes, at: before, now: log.now.sinceEpoch)
      totals.attachmentBytesTaken += received - before
      guard received == Int(clamping: part.id.length) else {
        // An empty part would be requested in an endless loop.
        if received == before { incoming.removeFirst(hasFailed: true) }
        return
      }
      // From here on the entry that refers to the content protects it from deletion.
      _ = try part.finish()
      incoming.removeFirst()
    } catch {
      guard [.noSpace, .damaged, .closed].contains(error.code), !log.reader.isClosed else {
        throw error
      }
      incoming.removeFirst(hasFailed: true)
    }
  }
}
