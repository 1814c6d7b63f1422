import Foundation

/// A process that speaks TLS in front of a plain server, and takes `CONNECT` as a proxy does: each
/// connection that begins with it gets `reply` first. Clients of this process believe it and take
/// it for their proxy, so it is for processes of their own (`#expect(processExitsWith:)`).
final class TLSFront {
  private let process = Process()
  private let input = Pipe()
  private let directory: URL
  let port: UInt16

  /// Whether there is anything to run it with.
  static let canRun =
    PythonClient.canRun
    && ["/usr/bin/openssl", "/usr/local/bin/openssl"].contains {
      FileManager.default.isExecutableFile(atPath: $0)
    }

  /// - Parameters:
  ///   - origin: the port of the plain server.
  ///   - reply: the head of the answer to `CONNECT`.
  ///   - isClean: whether connections end as TLS asks for, with `close_notify`.
  init(
    _ origin: UInt16, reply: String = "HTTP/1.1 200 Connected\r\n\r\n", isClean: Bool = true
  ) throws {
    directory = FileManager.default.temporaryDirectory.appending(path: "tls-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", "-c", Self.program, "\(origin)", reply, "\(isClean)"]
    process.currentDirectoryURL = directory
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    // The port, which it says when it listens.
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    guard let port = UInt16(line.trimmingCharacters(in: .newlines)) else {
      throw POSIXError(.ECONNREFUSED)
    }
    self.port = port
    for name in ["SSL_CERT_FILE", "URLSessionCertificateAuthorityInfoFile"] {
      setenv(name, directory.appending(path: "cert.pem").path, 1)
    }
  }

  /// Its address as a server.
  var url: String { "https://localhost:\(port)" }

  /// Makes it the proxy of this process; servers may have any name then.
  func becomeProxy() {
    for name in ["https_proxy", "HTTPS_PROXY"] { setenv(name, "http://127.0.0.1:\(port)", 1) }
  }

  deinit {
    // It ends with its input.
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
    try? FileManager.default.removeItem(at: directory)
  }

  private static let program = """
    import os, select, socket, ssl, subprocess, sys, threading
    origin, reply, clean = int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3] == "true"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
      "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
      "-days", "2", "-subj", "/CN=localhost", "-addext",
      "subjectAltName=DNS:localhost,DNS:server.test"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("cert.pem", "key.pem")

    def serve(client):
      server = socket.create_connection(("127.0.0.1", origin))
      try:
        if client.recv(1, socket.MSG_PEEK) == b"C":
          head = b""
          while not head.endswith(b"\\r\\n\\r\\n"): head += client.recv(1) or sys.exit()
          client.sendall(reply)
        client = context.wrap_socket(client, server_side=True)
        while True:
          ready = [client] if client.pending() else select.select([client, server], [], [])[0]
          for one, other in ((client, server), (server, client)):
            if one not in ready: continue
            piece = one.recv(65536)
            if not piece:
              if one is server and clean: client.unwrap()
              return
            other.sendall(piece)
      except (OSError, SystemExit): pass
      finally:
        for one in (client, server):
          try: one.shutdown(socket.SHUT_RDWR)
          except OSError: pass
          one.close()

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    while True:
      threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    """
}
