// Threads that wait for each other, but not forever: what never comes is an error, and ends all of them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>

std::atomic<bool> broken;
std::mutex why_lock;
std::string why;

[[noreturn]] void fail(const std::string &what)
{
    std::lock_guard<std::mutex> held(why_lock);
    if (!broken.exchange(true)) why = what;
    throw std::runtime_error(what);
}
void check(bool holds, const char *what)
{
    if (!holds) fail(what);
}
const auto PATIENCE = std::chrono::seconds(20);

template <class Condition>
void wait_until(std::unique_lock<std::mutex> &held, std::condition_variable &changed, const char *what, Condition holds)
{
    auto start = std::chrono::steady_clock::now();
    while (!holds()) {
        if (broken) throw std::runtime_error("another thread failed");
        if (std::chrono::steady_clock::now() - start > PATIENCE) fail(std::string("nothing comes: ") + what);
        changed.wait_for(held, std::chrono::milliseconds(100));
    }
}

class Meeting {
  public:
    explicit Meeting(int members) : members_(members) {}
    void meet(const char *what)
    {
        std::unique_lock<std::mutex> held(lock_);
        long round = round_;
        ++here_;
        settle();
        if (round_ == round) wait_until(held, all_, what, [&] { return round_ != round; });
    }
    int members() const { return members_; }
    // The two halves of `meet`: the round that this member has come to, and the wait for its end.
    long announce()
    {
        std::lock_guard<std::mutex> held(lock_);
        long round = round_;
        ++here_;
        settle();
        return round;
    }
    void join(long round, const char *what)
    {
        std::unique_lock<std::mutex> held(lock_);
        wait_until(held, all_, what, [&] { return round_ != round; });
    }
    // `announced`: the round that the member has come to without waiting for its end.
    void leave(long announced = -1)
    {
        std::lock_guard<std::mutex> held(lock_);
        if (announced == round_) --here_;
        --members_;
        settle();
    }

  private:
    void settle()
    {
        if (here_ < members_) return;
        here_ = 0;
        ++round_;
        all_.notify_all();
    }
    int members_, here_ = 0;
    long round_ = 0;
    std::mutex lock_;
    std::condition_variable all_;
};
