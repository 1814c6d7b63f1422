import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Disks that fail below a server")
struct ServerFaultTests {
  private let piece = AttachRequest.partBytes

  @Test(
    "an upload that cannot be read is passed over, and the database serves everything else",
    arguments: [SimulatedErrno.EIO, .EACCES, .EPERM], [FileSystemError.Operation.open, .read])
  func unreadable(number: SimulatedErrno, operation: FileSystemError.Operation) throws {
    let bench = Bench()
    let (film, other) = (content(5 * piece), content(3 * piece, 2))
    let lost = Device(1)
    var b = Device(2)
    #expect(try bench.attach(lost, film, 0..<2 * piece).received == 2 * piece)
    #expect(try bench.attach(b, other, 0..<2 * piece).received == 2 * piece)
    try bench.close()
    let name = "part-" + AttachmentID.text(AttachmentReference.of(film).sha256)
    bench.disk.plan = [
      FaultRule(
        .error(number), .chance(1), calls: .only([operation]), path: name, times: .max)
    ]
    #expect(try bench.handler().unreadableUploads.count == 1)
    #expect(try bench.attach(b, other, 2 * piece..<3 * piece).received == 3 * piece)
    #expect(try bench.push(&b, b.put("k", attachment: other)).map(\.name) == ["applied"])
    #expect(try bench.attach(lost, film, 0..<0).received == 0)
    // A sweep passes it over as well.
    #expect(throws: Never.self) { try bench.feed().engine.sweepAttachments() }
    bench.disk.plan = .none
    var received = 0
    while received < film.count {
      received = try bench.attach(lost, film, received..<film.count).received
    }
    #expect(received == film.count)
  }

  @Test(
    "callers hear what has failed, and not where on the server",
    arguments: [SimulatedErrno.ENOSPC, .EACCES, .EROFS, .EIO, .EMFILE])
  func paths(number: SimulatedErrno) throws {
    let bench = Bench()
    var a = Device(1)
    _ = try bench.push(&a, a.put("k", "1"))
    bench.disk.plan = .error(
      number, atCall: 1, of: [.open, .write, .allocate, .sync, .rename], sticky: true)
    func error(_ body: () throws -> Void) -> PeerError? {
      do { try body() } catch { return error as? PeerError }
      return nil
    }
    let film = content(2 * piece)
    let errors = [
      error { _ = try bench.attach(a, film, 0..<piece) },
      error { _ = try bench.push(&a, a.put("k", "2")) },
      error { _ = try bench.handler().hello(HelloRequest(replica: Device(3).id)) },
    ].compactMap { $0 }
    #expect(errors.count >= 2)
    #expect(number != .ENOSPC || errors[0].message == "the server's disk is full")
    for error in errors {
      #expect(error.kind == .unavailable)
      #expect(!error.message.contains("/") && !error.message.contains("feed"), "\(error)")
      // The server's own log says it all.
      #expect(error.detail != nil && error.description.contains(error.detail ?? ""))
      #expect(PeerError(error.kind, error.message) != error)
    }
  }
}
