import Testing
import Tidemark
import TidemarkSyncProtocol
import TidemarkSyncTestKit

/// Peers with one bug each, all of which the conformance suite has to find.
@Suite("Peers that do not conform")
struct BrokenPeerTests {
  enum Bug: String, CaseIterable, Sendable {
    case forgetsMarks, takesBatchesTwice, closesHoles, turnsVerdicts, losesEntries, tellsOwnKeys
    case losesLabels, doublesEntries, stopsEarly, ignoresScope, forgetsDeletes, miscounts
    case takesAnyCursor, neverWaits, hangs, hidesErrors, changesFeed
    case losesAttachments, takesAnyContent, alteredContent
  }

  /// A peer in memory whose answers are altered.
  final class Broken: Peer {
    private let peer: MemoryPeer
    private let bug: Bug

    init(_ bug: Bug) throws {
      peer = try MemoryPeer()
      self.bug = bug
    }

    var capabilities: PeerCapabilities { peer.capabilities }

    func hello(_ request: HelloRequest) async throws -> HelloAnswer {
      var answer = try await peer.hello(request)
      if bug == .forgetsMarks { answer.mark = ReplicaMark() }
      if bug == .changesFeed {
        answer.feed = request.replica
      }
      return answer
    }

    func attach(_ request: AttachRequest) async throws -> AttachAnswer {
      try await peer.attach(request)
    }

    func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
      var answer = try await peer.fetch(request)
      if bug == .alteredContent, answer.bytes?.isEmpty == false { answer.bytes?[0] ^= 1 }
      return answer
    }

    func push(_ request: PushRequest) async throws -> PushAnswer {
      var request = request
      if bug == .takesAnyContent {
        for index in request.changes.indices { request.changes[index].content.attachment = nil }
      }
      if bug == .takesBatchesTwice || bug == .closesHoles {
        let mark = try await peer.hello(HelloRequest(replica: request.replica)).mark
        let isOlder = request.number <= mark.number && mark.number > 0
        if isOlder == (bug == .takesBatchesTwice) { request.number = mark.number + 1 }
      }
      do {
        var answer = try await peer.push(request)
        if bug == .turnsVerdicts { answer.mark.verdicts.reverse() }
        return answer
      } catch let error as PeerError {
        guard bug == .hidesErrors, error.kind == .malformed else { throw error }
        throw PeerError(.unavailable, "later")
      }
    }

    func pull(_ request: PullRequest) async throws -> PullAnswer {
      var request = request
      switch bug {
      case .ignoresScope: request.scope = .everything
      case .neverWaits: request.waitMilliseconds = 0
      case .hangs where request.waitMilliseconds > 0:
        await Task { try? await Task.sleep(for: .seconds(600)) }.value
      default: break
      }
      var answer: PullAnswer
      do { answer = try await peer.pull(request) } catch let error as PeerError {
        guard bug == .takesAnyCursor, error.kind == .cursorGone else { throw error }
        request.after = .beginning
        answer = try await peer.pull(request)
      }
      switch bug {
      case .losesEntries where answer.entries.count > 2: answer.entries.remove(at: 1)
      case .doublesEntries: answer.entries += answer.entries.suffix(1)
      case .stopsEarly: answer.range.head = answer.cursor.offset
      case .tellsOwnKeys, .losesLabels, .losesAttachments:
        for index in answer.entries.indices {
          if bug == .losesLabels { answer.entries[index].content.labels = [] }
          if bug == .losesAttachments { answer.entries[index].content.attachment = nil }
          if answer.entries[index].kind == .own { answer.entries[index].key = [1] }
        }
      default: break
      }
      return answer
    }

    func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
      var answer = try await peer.values(request)
      if bug == .forgetsDeletes { answer.entries.removeAll { $0.kind == .delete } }
      return answer
    }

    func digest(_ request: DigestRequest) async throws -> DigestAnswer {
      var answer = try await peer.digest(request)
      if bug == .miscounts { answer.parts[0].total.sum &+= 1 }
      return answer
    }

    func close() async { await peer.close() }
  }

  @Test("each bug is found", arguments: Bug.allCases)
  func found(bug: Bug) async throws {
    var failed: [String] = []
    for check in PeerConformance.checks {
      // A peer that hangs is found out by waiting for it, any other before that.
      let patience = Duration.seconds(bug == .hangs ? 1 : 600)
      do { try await check.run(upon: try Broken(bug), patience: patience) } catch {
        failed.append("\(error)")
        break
      }
    }
    #expect(!failed.isEmpty, "no check notices \(bug)")
  }

  @Test("all checks are run, and what failed is told")
  func report() async throws {
    let failure = await #expect(throws: PeerConformance.Failure.self) {
      try await PeerConformance.run { try Broken(.tellsOwnKeys) }
    }
    #expect(failure?.description.contains("own entries have keys") == true)
    try await PeerConformance.run { try MemoryPeer() }
  }
}
