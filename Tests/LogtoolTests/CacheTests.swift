import Testing
import Tidemark
import TidemarkTestKit

@Suite("Caches on the command line")
struct CacheTests {
  private let bench = Bench.withNotes()

  init() throws {
    let store = try bench.open("S")
    let policy = CachePolicy(maxAge: .seconds(60), capacity: 4)
    let cache = try store.cache(prefix: "articles/", policy: policy)
    for number in 1...5 {
      try cache.blocking.put(
        "\(number)", Array("text".utf8), maxAge: number == 5 ? .seconds(9_000) : nil)
      bench.clock.advance(by: .seconds(10))
    }
    _ = try cache.value(forKey: "2")
    _ = try cache.value(forKey: "2")
    _ = try cache.value(forKey: "absent")
    try store.blocking.put("articles/mine", "owned")
    try store.blocking.close()
    bench.clock.advance(by: .seconds(100))
  }

  private func keys(_ run: ToolRun) -> [String] {
    run.lines.map { String($0.prefix { $0 != "\t" }) }
  }

  @Test("cache tells of each cache its rules, how full it is and how its reads went")
  func caches() throws {
    let run = bench.run("cache", "S", "--output", "json")
    let caches = try #require(try run.object()["caches"] as? [[String: Any]])
    #expect(caches.count == 1)
    let cache = try #require(caches.first)
    #expect(cache["prefix"] as? String == "articles/")
    #expect(cache["entries"] as? Int == 4 && cache["capacity"] as? Int == 4)
    #expect(cache["hits"] as? Int == 2 && cache["misses"] as? Int == 1)
    #expect(cache["evictions"] as? Int == 1 && cache["max_age"] as? Int == 60)
    let text = bench.run("cache", "S").output
    #expect(text.contains("4 entries of 4") && text.contains("66 % hits"))
    #expect(bench.run("cache", "E").status == 66)
    let stat = try bench.run("stat", "S", "--output", "json").object()
    #expect((stat["cached"] as? [String: Any])?["keys"] as? Int == 4)
  }

  @Test("with a prefix it lists what makes room next, with freshness, age and reads")
  func entries() throws {
    let run = bench.run("cache", "S", "--prefix", "articles/")
    #expect(keys(run) == ["3", "4", "5", "2"])
    #expect(run.lines.first?.contains("\tstale\t130\t0\t") == true)
    #expect(run.lines.last?.contains("\tstale\t140\t2\t") == true)
    #expect(keys(bench.run("cache", "S", "--prefix", "articles/", "--limit", "1")) == ["3"])
    let valid = try bench.run("cache", "S", "--prefix", "articles/", "--output", "jsonl").objects()
      .filter { $0["valid"] as? Bool == true }
    #expect(valid.map { $0["key"] as? String } == ["5"])
  }

  @Test("scan shows cached entries with what is known about them, of any cache or none")
  func scan() throws {
    let run = bench.run("scan", "S", "--cache")
    #expect(
      keys(run) == ["articles/2", "articles/3", "articles/4", "articles/5", "note/3"])
    #expect(run.lines.first?.contains("\tstale\t140\t2\t") == true)
    #expect(run.lines.last?.hasSuffix("\t0\t-") == true)
    #expect(keys(bench.run("scan", "S", "--cache", "--limit", "2")).count == 2)
    #expect(bench.run("scan", "S", "--cache", "--keys").status == 64)
  }

  @Test("entries are given up by key, all, or those that are stale, and a dry run gives up none")
  func evict() throws {
    let prefix = ["cache", "S", "--prefix", "articles/"]
    for arguments in [["--evict", "3"], ["--evict-all"], ["--expire"]] {
      #expect(bench.run(prefix + arguments + ["--dry-run"]).status == 0)
    }
    #expect(bench.run(prefix).lines.count == 4)
    #expect(bench.run(prefix + ["--evict", "3", "--evict", "mine"]).talk.contains("1 entry"))
    #expect(keys(bench.run(prefix)) == ["4", "5", "2"])
    #expect(bench.run(prefix + ["--expire"]).talk.contains("2 entries"))
    #expect(keys(bench.run(prefix)) == ["5"])
    let all = bench.run(prefix + ["--evict-all", "--output", "json"])
    #expect(try all.object()["evicted"] as? Int == 1)
    #expect(bench.run("get", "S", "articles/mine").output == "owned")
    #expect(bench.run(prefix + ["--evict", "3"]).status == 1)
  }

  @Test("a question that makes no sense, and a cache that is not known, are clear errors")
  func errors() {
    for arguments in [
      ["--evict", "1"], ["--expire"], ["--limit", "1"], ["--dry-run"],
      ["--prefix", "a", "--expire", "--evict-all"],
    ] {
      #expect(bench.run(["cache", "S"] + arguments).status == 64, "\(arguments)")
    }
    let unknown = bench.run("cache", "S", "--prefix", "pages/")
    #expect(unknown.status == 1 && unknown.talk.contains("no cache of that prefix"))
  }
}
