import Foundation
import Testing
import Tidemark
import TidemarkPostgres
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

/// The PostgreSQL server that `Tools/test` starts, or whose address somebody gives.
enum PostgresTrial {
  /// Nil where there is none, or the package was built without the trait `PostgreSQL`.
  static var url: String? {
    #if PostgreSQL
      ProcessInfo.processInfo.environment["TIDEMARK_TEST_POSTGRES"]
    #else
      nil
    #endif
  }

  /// A new database as two servers see it.
  static func feeds() throws -> [any Feed & FeedUpkeep] {
    #if PostgreSQL
      let name = "test \(UUID())"
      return try servers.get().map { try $0.feed(of: name) }
    #else
      throw TidemarkError(.storeMissing, "built without the trait PostgreSQL")
    #endif
  }

  #if PostgreSQL
    /// How the server is reached: `TIDEMARK_TEST_POOLER` says that a pooler in transaction mode
    /// stands before it, through which no notifications come.
    static func settings() throws -> PostgresSettings {
      var settings = PostgresSettings(url: try #require(url))
      if ProcessInfo.processInfo.environment["TIDEMARK_TEST_POOLER"] == "1" {
        (settings.isPooled, settings.directURL) = (true, nil)
      }
      return settings
    }

    static let servers = Result { () throws in
      let settings = try Self.settings()
      try PostgresFeeds.applySchema(settings)
      return [try PostgresFeeds(settings), try PostgresFeeds(settings)]
    }
  #endif
}

/// A peer over two servers of one database that sends its calls to each in turn, as a load balancer
/// does.
final class AlternatingPeer: Peer {
  private let peers: [any Peer]
  private let turn = Lock(0)

  init(_ peers: [any Peer]) { self.peers = peers }

  private var next: any Peer {
    peers[
      turn.withLock { turn in
        turn += 1
        return turn % peers.count
      }]
  }

  var capabilities: PeerCapabilities { peers[0].capabilities }
  func hello(_ request: HelloRequest) async throws -> HelloAnswer { try await next.hello(request) }
  func push(_ request: PushRequest) async throws -> PushAnswer { try await next.push(request) }
  func pull(_ request: PullRequest) async throws -> PullAnswer { try await next.pull(request) }
  func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    try await next.values(request)
  }
  func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    try await next.digest(request)
  }
  func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    try await next.attach(request)
  }
  func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    try await next.fetch(request)
  }
  func close() async { for peer in peers { await peer.close() } }
}
